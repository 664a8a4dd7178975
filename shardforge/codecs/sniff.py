"""Names a file's format by its first bytes, never by its name."""

from __future__ import annotations

_PREFIXES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"II+\0", "tiff"),
    (b"MM\0+", "tiff"),
    (b"qoif", "qoi"),
    (b"8BPS\0\1", "psd"),
    (b"8BPS\0\2", "psd"),
    (b"\xff\x4f\xff\x51", "jpeg2000"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "jpeg2000"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "jxl"),
    (b"\xff\x0a", "jxl"),
    (b"II\xbc", "jxr"),
    (b"\0\0\1\0", "ico"),
    (b"v/1\1", "exr"),
    (b"#?RADIANCE", "hdr"),
    (b"#?RGBE", "hdr"),
    (b"DDS ", "dds"),
    (b"icns", "icns"),
    (b"SIMPLE  =", "fits"),
    (b"\x59\xa6\x6a\x95", "sun"),
    (b"\x01\xda", "sgi"),
    (b"gimp xcf ", "xcf"),
    (b"FUJIFILMCCD-RAW", "raw"),
    (b"IIU\0", "raw"),
    (b"IIRO", "raw"),
    (b"IIRS", "raw"),
    (b"MMOR", "raw"),
)
_HEIF_BRANDS = frozenset(
    (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"mif2", b"msf1")
)
_AVIF_BRANDS = frozenset((b"avif", b"avis"))
_BMP_HEADER_SIZES = frozenset((12, 16, 40, 52, 56, 64, 108, 124))


def sniff(data: bytes) -> str | None:
    """The format of an image file, judged by its content.

    Args:
        data: the whole file or at least its first 512 bytes.

    Returns:
        ``jpeg``, ``png``, ``webp``, ``tiff``, ``bmp``, ``gif``, ``avif``, ``heif``, ``jpeg2000``, ``jxl``, ``psd``,
        ``pnm``, ``ico``, ``qoi``, ``tga``, ``pcx``, ``dicom``, or a format that is recognised but never decoded
        (``raw``, ``exr``, ``dds``, …); None if it is no known image format.
    """
    if data[128:132] == b"DICM":
        return "dicom"
    if data[:2] in (b"II", b"MM") and data[8:10] == b"CR":
        return "raw"
    if data[:2] == b"\xff\xd8" and data[2:3] in (b"", b"\xff"):
        return "jpeg"
    for prefix, name in _PREFIXES:
        if data.startswith(prefix):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:8] == b"ftyp":
        return _iso_brand(data)
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in _BMP_HEADER_SIZES:
        return "bmp"
    if data[:1] == b"P" and data[1:2] in (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"F", b"f"):
        return "pnm" if _is_pnm(data) else None
    if data[:1] == b"\x0a" and data[1:2] in (b"\0", b"\2", b"\3", b"\4", b"\5") and data[2:3] in (b"\0", b"\1"):
        return "pcx"
    if data[:4] == b"\0\0\2\0" and any(data[4:6]):
        return "cur"
    return "tga" if _is_tga(data) else None


def _iso_brand(data: bytes) -> str | None:
    """ISO/IEC 14496-12 file type box: the major brand decides, then the compatible ones."""
    size = min(int.from_bytes(data[:4], "big"), len(data), 512)
    brands = [data[8:12], *(data[at : at + 4] for at in range(16, size - 3, 4))]
    if brands[0] == b"crx ":
        return "raw"
    if any(brand in _AVIF_BRANDS for brand in brands):
        return "avif"
    if any(brand in _HEIF_BRANDS for brand in brands):
        return "heif"
    return None


def _is_pnm(data: bytes) -> bool:
    """The digit is followed by white space or a comment; a minus sign or a digit is a damaged header, not text."""
    return data[2:3] in (b" ", b"\t", b"\n", b"\r", b"#") or data[2:3].isdigit()


def _is_tga(data: bytes) -> bool:
    """Truevision TGA has no magic number: every field of the header has to make sense (TGA 2.0, fields 2 to 5)."""
    if len(data) < 18:
        return False
    map_type, kind, depth, descriptor = data[1], data[2], data[16], data[17]
    if map_type not in (0, 1) or kind not in (1, 2, 3, 9, 10, 11) or descriptor & 0xC0:
        return False
    mapped = kind in (1, 9)
    if mapped != bool(map_type) or (not mapped and any(data[3:8])):
        return False
    depths = {1: (8, 16), 2: (15, 16, 24, 32), 3: (8, 16)}[kind & 3]
    return depth in depths and any(data[12:14]) and any(data[14:16])
