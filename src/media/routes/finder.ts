import type { LocalMedia } from '../local/local-media.ts';
import { mediaAddress, mediaNotFound } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import type { MediaFiles } from '../providers/media-files.ts';
import type { RemoteMedia, RemoteMediaRequest } from '../remote/remote-media.ts';

export interface FinderDeps {
  readonly serverName: string;
  readonly files: MediaFiles;
  readonly local: LocalMedia;
  readonly remote: RemoteMedia;
  readonly options: { readonly enable_authenticated_media: boolean };
}

/** A request for media of any server. `ip` and `mayFetch` have no effect on media of this server. */
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
   * @param path server name and media id in the path of the request
   * @throws MatrixError the errors of `LocalMedia.find` and `RemoteMedia.find`; M_NOT_FOUND for an unauthenticated
   * request for authenticated media
   */
  async find(path: { serverName: string; mediaId: string }, request: FindRequest): Promise<MediaFile> {
    const { serverName, local, remote, options } = this.#deps;
    const address = mediaAddress(path.serverName, path.mediaId);
    // Unauthenticated endpoints serve only media that was stored before authentication was required (MSC3916).
    const excludesAuthenticated = request.isUnauthenticated && options.enable_authenticated_media;
    const file =
      address.serverName === serverName
        ? // A pending upload becomes authenticated media, so waiting for it is of no use.
          await local.find(
            address.mediaId,
            excludesAuthenticated ? 0 : request.uploadTimeout,
            request.signal,
            request,
          )
        : await remote.find(address, { ...request, mayFetch: request.mayFetch && !excludesAuthenticated });
    if (excludesAuthenticated && file.isAuthenticated) throw mediaNotFound();
    return file;
  }
}

/** Returns the timeout that a client requests, at most `max`; in milliseconds. */
export const boundedTimeout = (requested: number, max: number) => Math.min(Math.max(0, requested), max);
