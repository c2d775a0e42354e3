import { join } from 'node:path';
import type { MediaArea } from '../media-file.ts';

/** Where files are before they have their place, below `media_store_path`. */
export const incoming = 'incoming';

/** Where thumbnails are, each file's in a directory of its own. */
export const thumbnails = 'thumbnails';

/** The directories of two levels for a file, below the one of its area. */
export const parentsOf = (fileId: string): readonly [string, string] => [
  fileId.slice(0, 2),
  join(fileId.slice(0, 2), fileId.slice(2, 4)),
];

/** The path of a file below the directory of its area. */
export const placeOf = (fileId: string) => join(parentsOf(fileId)[1], fileId.slice(4));

export const thumbnailsOf = (directory: string, area: MediaArea, fileId: string) =>
  join(directory, thumbnails, area, placeOf(fileId));
