import { join } from 'node:path';
import type { MediaArea } from '../media-file.ts';

/**
 * Directory below `media_store_path` for files that are being written, and for markers: files whose names say what
 * happens to a file at its final path.
 */
export const incomingDirectory = 'incoming';

/** Directory of thumbnails below `media_store_path`, with one directory per media file. */
export const thumbnailsDirectory = 'thumbnails';

/** Returns the two directory levels of a file, below the directory of its area. */
export const parentsOf = (fileId: string): readonly [first: string, second: string] => [
  fileId.slice(0, 2),
  join(fileId.slice(0, 2), fileId.slice(2, 4)),
];

/** Returns the path of a file below the directory of its area. */
export const placeOf = (fileId: string) => join(parentsOf(fileId)[1], fileId.slice(4));

/** Returns the id of the file at a path below the directory of its area. */
export const fileIdAt = (place: string) => place.replaceAll(/[\\/]/g, '');

/**
 * Returns the path of a file, or of a marker of a file, in the incoming directory.
 * @param stage `part`: the file is being written, or it is linked to its final path and its row is about to be written.
 * `placed`: the file is at its final path, and its row is about to be written or deleted. `moving`: the file is at its
 * final path, and `hearth media move` is storing it at providers
 */
export const incomingPath = (
  directory: string,
  area: MediaArea,
  fileId: string,
  stage: 'part' | 'placed' | 'moving',
) => join(directory, incomingDirectory, `${area}.${fileId}.${stage}`);

/** Returns the path of the directory with the thumbnails of a file. */
export const thumbnailsOf = (directory: string, area: MediaArea, fileId: string) =>
  join(directory, thumbnailsDirectory, area, placeOf(fileId));
