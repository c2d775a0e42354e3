import type { MediaStore } from '../disk/media-store.ts';
import type { LocalMedia } from '../local/local-media.ts';
import { mediaAddress, noMedia } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import type { RemoteMedia, RemoteWish } from '../remote/remote-media.ts';

export interface FinderDeps {
  readonly serverName: string;
  readonly disk: MediaStore;
  readonly local: LocalMedia;
  readonly remote: RemoteMedia;
  readonly options: { readonly enable_authenticated_media: boolean };
}

export interface Wish extends RemoteWish {
  readonly signal: AbortSignal;
}

/** Finds media of any server. */
export class Finder {
  readonly #deps: FinderDeps;

  constructor(deps: FinderDeps) {
    this.#deps = deps;
  }

  get disk(): MediaStore {
    return this.#deps.disk;
  }

  /**
   * @param given from the path of a request
   * @throws MatrixError as `LocalMedia.find` and `RemoteMedia.find` do; M_NOT_FOUND also for media that is only for
   * those who say who they are
   */
  async find(given: { serverName: string; mediaId: string }, wish: Wish): Promise<MediaFile> {
    const { serverName, local, remote, options } = this.#deps;
    const address = mediaAddress(given.serverName, given.mediaId);
    const isFrozen = wish.isOpen && options.enable_authenticated_media;
    const file =
      address.serverName === serverName
        ? await local.find(address.mediaId, wish.patience, wish.signal)
        : await remote.find(address, { ...wish, mayFetch: wish.mayFetch && !isFrozen });
    if (isFrozen && file.isAuthenticated) throw noMedia();
    return file;
  }
}

/** What a client asks for, within bounds; in milliseconds. */
export const patienceOf = (asked: number, longest: number) => Math.min(Math.max(0, asked), longest);
