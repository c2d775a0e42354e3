import type { MediaFiles } from '../disk/media-files.ts';
import type { LocalMedia } from '../local/local-media.ts';
import { mediaAddress, mediaNotFound } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import type { RemoteMedia, RemoteMediaRequest } from '../remote/remote-media.ts';

export interface FinderDeps {
  readonly serverName: string;
  readonly files: MediaFiles;
  readonly local: LocalMedia;
  readonly remote: RemoteMedia;
  readonly options: { readonly enable_authenticated_media: boolean };
}

export interface FindRequest extends RemoteMediaRequest {
  readonly signal: AbortSignal;
}

/** Finds media of any server. */
export class MediaFinder {
  readonly #deps: FinderDeps;

  constructor(deps: FinderDeps) {
    this.#deps = deps;
  }

  get files(): MediaFiles {
    return this.#deps.files;
  }

  /**
   * Finds a file.
   * @param given server name and media id of the request's path
   * @throws MatrixError the errors of `LocalMedia.find` and `RemoteMedia.find`; M_NOT_FOUND for an unauthenticated
   * request for authenticated media
   */
  async find(given: { serverName: string; mediaId: string }, wanted: FindRequest): Promise<MediaFile> {
    const { serverName, local, remote, options } = this.#deps;
    const address = mediaAddress(given.serverName, given.mediaId);
    const isFrozen = wanted.isOpen && options.enable_authenticated_media;
    const file =
      address.serverName === serverName
        ? // A pending upload becomes authenticated media, so that waiting for it is of no use.
          await local.find(address.mediaId, isFrozen ? 0 : wanted.uploadTimeout, wanted.signal, wanted)
        : await remote.find(address, { ...wanted, mayFetch: wanted.mayFetch && !isFrozen });
    if (isFrozen && file.isAuthenticated) throw mediaNotFound();
    return file;
  }
}

/** Returns the timeout that a client asks for, at most `longest`; in milliseconds. */
export const boundedTimeout = (asked: number, longest: number) => Math.min(Math.max(0, asked), longest);
