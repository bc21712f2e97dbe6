"""What goes in: from what the caller handed over to items, and from an item to the bytes of an upload.

- `sources` says which kind of source it is and lists it, one `Item` each (`items`), without reading pixels.
- `folders` walks folders and projects; `arrays` refuses arrays that are no images.
- `images` turns an item into encoded bytes, after checks that need no decoding.
- `opening` opens what is looked at or sent.
- `formats` reads the headers of image files; `pixels` decodes, where a file cannot go as it is.
- `uploads` turns encoded bytes into parts of a request that stream, as often as they are asked to.

The room opens no socket: a URL is an item whose content somebody else fetches.
"""
