import { join } from 'node:path';
import type { MediaArea } from '../media-file.ts';

/** Directory of incomplete files, below `media_store_path`. */
export const incoming = 'incoming';

/** Directory of thumbnails, with one directory per media file. */
export const thumbnails = 'thumbnails';

/** Returns the two directory levels of a file, below the directory of its area. */
export const parentsOf = (fileId: string): readonly [string, string] => [
  fileId.slice(0, 2),
  join(fileId.slice(0, 2), fileId.slice(2, 4)),
];

/** Returns the path of a file below the directory of its area. */
export const placeOf = (fileId: string) => join(parentsOf(fileId)[1], fileId.slice(4));

export const thumbnailsOf = (directory: string, area: MediaArea, fileId: string) =>
  join(directory, thumbnails, area, placeOf(fileId));
