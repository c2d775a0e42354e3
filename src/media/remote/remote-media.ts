import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { OutboundError } from '../../kernel/outbound/index.ts';
import type { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { limitExceeded, MatrixError, unknown } from '../../protocol/index.ts';
import type { MediaStore } from '../disk/media-store.ts';
import { type MediaAddress, noMedia } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import * as store from '../store.ts';
import type { MediaTables } from '../tables.ts';
import { fetchMedia } from './fetch-media.ts';
import type { MediaServers } from './media-servers.ts';
import { MalformedMultipart } from './multipart.ts';

export interface RemoteMediaOptions {
  readonly enable_authenticated_media: boolean;
  /** Bytes. */
  readonly max_upload_size: number;
  readonly prevent_media_downloads_from: readonly string[];
}

export interface RemoteMediaDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly disk: MediaStore;
  readonly servers: MediaServers;
  /** Bytes that come from other servers, for each client address. */
  readonly limit: RateLimiter;
  readonly options: RemoteMediaOptions;
}

/** Who wants media of another server, and how. */
export interface RemoteWish {
  /** Milliseconds to wait for an upload that is still to come. */
  readonly patience: number;
  /** The address of the client. */
  readonly ip: string;
  /** Nobody has said who they are: the other server is asked for what it gives to anybody. */
  readonly isOpen: boolean;
  /** Whether the other server may be asked at all. */
  readonly mayFetch: boolean;
}

/** Downloads that go on at the same time. */
const maxDownloads = 64;

/** Milliseconds until an answer begins, on top of the patience, and until it has ended. */
const [untilBegin, untilEnd] = [30_000, 10 * 60_000];

/** The frame of an answer of several parts, in bytes. */
const frame = 128 * 1024;

/** Media of other servers, of which copies are kept. */
export class RemoteMedia {
  readonly #deps: RemoteMediaDeps;
  readonly #downloads = new LoadOnce<string, MediaFile>();
  readonly #prevented: ReadonlySet<string>;
  readonly #stopping = new AbortController();

  constructor(deps: RemoteMediaDeps) {
    this.#deps = deps;
    this.#prevented = new Set(deps.options.prevent_media_downloads_from);
  }

  /**
   * A file of another server, which is fetched if it is not here.
   * @throws MatrixError M_NOT_FOUND, M_NOT_YET_UPLOADED, M_LIMIT_EXCEEDED, M_TOO_LARGE (502), M_UNKNOWN (502)
   */
  async find(address: MediaAddress, wish: RemoteWish): Promise<MediaFile> {
    if (this.#prevented.has(address.serverName)) throw noMedia();
    const kept = await this.#kept(address);
    if (kept !== undefined) return kept;
    if (!wish.mayFetch) throw noMedia();
    return this.#download(address, wish);
  }

  /** Gives up what is being fetched. */
  stop(): void {
    this.#stopping.abort();
  }

  async #kept(address: MediaAddress): Promise<MediaFile | undefined> {
    const { database, disk } = this.#deps;
    const file = await store.readRemote(database.reader(), address);
    if (file === undefined || (await disk.sizeOf('remote', file.fileId)) === file.size) return file;
    // Somebody has cleared out the directory: it is fetched again.
    await database.transaction<MediaTables, void>((writer) =>
      store.deleteRemote(writer, address, file.fileId),
    );
    await disk.delete('remote', file.fileId);
    return undefined;
  }

  /** Requests for the same file at the same time share one download. */
  #download(address: MediaAddress, wish: RemoteWish): Promise<MediaFile> {
    const key = `${wish.isOpen ? 'open' : 'signed'} ${address.serverName}/${address.mediaId}`;
    const running = this.#downloads.get(key);
    if (running !== undefined) return running;
    if (this.#downloads.size >= maxDownloads) throw limitExceeded(1_000);
    return this.#downloads.run(key, () => this.#fetch(address, wish));
  }

  async #fetch(address: MediaAddress, wish: RemoteWish): Promise<MediaFile> {
    const { clock, servers, limit, options } = this.#deps;
    limit.check(wish.ip);
    const patience = new AbortController();
    const giveUp = () => patience.abort();
    const begin = clock.setTimer(wish.patience + untilBegin, giveUp);
    const end = clock.setTimer(untilEnd, giveUp);
    const signal = AbortSignal.any([patience.signal, this.#stopping.signal]);
    const request = { uploadTimeout: wish.patience, maxBody: options.max_upload_size + frame, signal };
    try {
      const media = await fetchMedia(servers, address, request, wish.isOpen);
      begin.cancel();
      try {
        return await this.#keep(address, media, this.#bounded(media.content, wish.ip));
      } finally {
        media.close();
      }
    } catch (error) {
      throw errorOf(error);
    } finally {
      begin.cancel();
      end.cancel();
    }
  }

  async *#bounded(content: AsyncIterable<Uint8Array>, ip: string): AsyncGenerator<Uint8Array> {
    const { limit, options } = this.#deps;
    let left = options.max_upload_size;
    for await (const chunk of content) {
      left -= chunk.length;
      if (left < 0) throw tooLargeElsewhere();
      limit.take(ip, chunk.length);
      yield chunk;
    }
  }

  #keep(
    address: MediaAddress,
    { contentType, fileName }: Pick<MediaFile, 'contentType' | 'fileName'>,
    content: AsyncIterable<Uint8Array>,
  ): Promise<MediaFile> {
    const { database, clock, disk, options } = this.#deps;
    const isAuthenticated = options.enable_authenticated_media;
    return disk
      .keep('remote', content, async (stored) => {
        const file = { ...stored, contentType, fileName, isAuthenticated };
        const isNew = await database.transaction<MediaTables, boolean>((writer) =>
          store.insertRemote(writer, address, clock.now(), file),
        );
        if (!isNew) throw new KeptAlready();
        return { area: 'remote' as const, ...file };
      })
      .catch(async (error: unknown) => {
        const kept = error instanceof KeptAlready ? await this.#kept(address) : undefined;
        if (kept === undefined) throw error;
        return kept;
      });
  }
}

/** Somebody else was quicker: the file that was fetched is not needed. */
class KeptAlready extends Error {}

export const outOfTime = () => unknown('The other server did not answer in time', 504);

/** Source: client-server API, "Content repository", "Security considerations". */
export const tooLargeElsewhere = () =>
  new MatrixError(502, 'M_TOO_LARGE', 'This content is too large to be fetched from the other server');

/** What a client is told of an answer that breaks off or makes no sense. */
function errorOf(error: unknown): unknown {
  if (error instanceof MalformedMultipart) return unknown(`The other server's answer: ${error.message}`, 502);
  if (!(error instanceof OutboundError)) return error;
  if (error.failure === 'too-large') return tooLargeElsewhere();
  if (error.failure === 'aborted' || error.failure === 'timeout') return outOfTime();
  return unknown('The media could not be fetched to its end', 502);
}
