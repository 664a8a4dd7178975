"""DICOM items: from a scanned source to the plan, and from an item to its sample."""
