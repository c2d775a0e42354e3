import type { Clock } from '../../kernel/clock.ts';
import { CountByKey } from '../../kernel/count-by-key.ts';
import type { Database } from '../../kernel/database/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { OutboundError } from '../../kernel/outbound/index.ts';
import { addressKey, type RateLimiter } from '../../kernel/rate-limits/index.ts';
import { limitExceeded, MatrixError, unknown } from '../../protocol/index.ts';
import { type MediaAddress, mediaNotFound } from '../media-address.ts';
import type { MediaFile } from '../media-file.ts';
import type { MediaRepositoryRules } from '../media-rules.ts';
import type { MediaAccess, MediaReading } from '../moderation/media-access.ts';
import { administratorWhoQuarantined } from '../moderation/quarantined-hash.ts';
import type { MediaFiles } from '../providers/media-files.ts';
import type { ProviderStorage } from '../providers/provider-storage.ts';
import * as store from '../store.ts';
import type { MediaTables } from '../tables.ts';
import { fetchMedia } from './fetch-media.ts';
import type { MediaServers } from './media-servers.ts';
import { MalformedMultipart } from './multipart.ts';
import { TransferWatch } from './transfer-watch.ts';

export interface RemoteMediaOptions {
  readonly enable_authenticated_media: boolean;
  /** Bytes. */
  readonly max_upload_size: number;
  readonly prevent_media_downloads_from: readonly string[];
}

export interface RemoteMediaDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly files: MediaFiles;
  /** Stores copies at storage providers. */
  readonly providerStorage: ProviderStorage;
  readonly access: MediaAccess;
  readonly servers: MediaServers;
  /** Limits the bytes from remote servers, per client address. */
  readonly limit: RateLimiter;
  readonly options: RemoteMediaOptions;
  /** Rules that modules supply. */
  readonly rules?: MediaRepositoryRules | undefined;
}

/** A request for remote media. */
export interface RemoteMediaRequest extends MediaReading {
  /** Milliseconds to wait for a pending upload. */
  readonly uploadTimeout: number;
  /** IP address of the client. */
  readonly ip: string;
  /**
   * Whether the request is unauthenticated. Media is then fetched from the remote server's unauthenticated endpoint.
   */
  readonly isUnauthenticated: boolean;
  /** Whether the media may be fetched from the remote server. */
  readonly mayFetch: boolean;
}

/** Maximum number of concurrent downloads, for all clients. */
const maxDownloads = 64;

/** Milliseconds until a response must have begun, in addition to the upload timeout. */
const responseTimeout = 30_000;

/** Milliseconds until a response must have ended. */
const downloadTimeout = 10 * 60_000;

/** Maximum bytes of a multipart response in addition to its media. */
const multipartOverhead = 128 * 1024;

/** Downloads remote media and stores copies. */
export class RemoteMedia {
  readonly #deps: RemoteMediaDeps;
  readonly #downloads = new LoadOnce<string, MediaFile>();
  /** Number of running downloads by the address of the client that has caused them. */
  readonly #running = new CountByKey<string>();
  /** Number of running downloads by remote server. */
  readonly #runningOfServers = new CountByKey<string>();
  readonly #prevented: ReadonlySet<string>;
  readonly #stopping = new AbortController();

  constructor(deps: RemoteMediaDeps) {
    this.#deps = deps;
    this.#prevented = new Set(deps.options.prevent_media_downloads_from);
  }

  /**
   * Returns a file of a remote server, and downloads it if there is no copy.
   * @throws MatrixError M_NOT_FOUND, M_NOT_YET_UPLOADED, M_LIMIT_EXCEEDED, M_TOO_LARGE (502), M_UNKNOWN (502; 503 when a
   * storage provider fails; 504 when the remote server does not answer in time)
   */
  async find(address: MediaAddress, request: RemoteMediaRequest): Promise<MediaFile> {
    if (this.#prevented.has(address.serverName)) throw mediaNotFound();
    const { access } = this.#deps;
    const stored = await this.#findStored(address);
    if (stored !== undefined) return access.open(stored, request);
    if (!request.mayFetch) throw mediaNotFound();
    return access.open(await this.#download(address, request), request);
  }

  /** Aborts all downloads. */
  stop(): void {
    this.#stopping.abort();
  }

  async #findStored(address: MediaAddress): Promise<MediaFile | undefined> {
    const { database, files, providerStorage } = this.#deps;
    const file = await store.readRemote(database.reader(), address);
    // A quarantined copy is returned even if its file is missing: its row prevents another download.
    if (file === undefined || file.isQuarantined || (await files.isOnDisk(file))) return file;
    if (providerStorage.isUsed && (await files.ensure(file))) return file;
    // The file is neither on the disk nor at a storage provider: it is downloaded again.
    await database.transaction<MediaTables, void>((writer) =>
      store.deleteRemote(writer, address, file.fileId),
    );
    await files.disk.delete('remote', file.fileId);
    return undefined;
  }

  /** Downloads a file once for all concurrent requests for it. */
  #download(address: MediaAddress, request: RemoteMediaRequest): Promise<MediaFile> {
    const key = `${request.isUnauthenticated ? 'open' : 'signed'} ${address.serverName}/${address.mediaId}`;
    const running = this.#downloads.get(key);
    if (running !== undefined) return running;
    const client = addressKey(request.ip);
    // A client address or a remote server may have as many downloads as stay free for others: the first client
    // 32, the second 16, and so on. So neither a client nor a slow server can occupy all downloads.
    const free = maxDownloads - this.#downloads.size;
    const downloadsOfServers = this.#runningOfServers;
    if (this.#running.of(client) >= free || downloadsOfServers.of(address.serverName) >= free)
      throw limitExceeded(1_000);
    const fetch = () => this.#running.during(client, () => this.#fetch(address, request));
    return this.#downloads.run(key, () => downloadsOfServers.during(address.serverName, fetch));
  }

  async #fetch(address: MediaAddress, request: RemoteMediaRequest): Promise<MediaFile> {
    const { clock, servers, limit, options } = this.#deps;
    limit.check(request.ip);
    const timeout = new AbortController();
    const abort = () => timeout.abort();
    const beginTimer = clock.setTimer(request.uploadTimeout + responseTimeout, abort);
    const endTimer = clock.setTimer(downloadTimeout, abort);
    const signal = AbortSignal.any([timeout.signal, this.#stopping.signal]);
    const serverRequest = {
      uploadTimeout: request.uploadTimeout,
      maxBody: options.max_upload_size + multipartOverhead,
      signal,
    };
    try {
      const media = await fetchMedia(servers, address, serverRequest, request.isUnauthenticated);
      beginTimer.cancel();
      const watch = new TransferWatch(clock, abort);
      try {
        return await this.#store(address, media, this.#bounded(media.content, request.ip, watch));
      } finally {
        watch.stop();
        media.close();
      }
    } catch (error) {
      throw errorOf(error);
    } finally {
      beginTimer.cancel();
      endTimer.cancel();
    }
  }

  /** Yields the bytes. Enforces the maximum size, the limit of the client address, and the minimum speed. */
  async *#bounded(
    content: AsyncIterable<Uint8Array>,
    ip: string,
    watch: TransferWatch,
  ): AsyncGenerator<Uint8Array> {
    const { limit, options } = this.#deps;
    let remainingBytes = options.max_upload_size;
    for await (const chunk of content) {
      remainingBytes -= chunk.length;
      if (remainingBytes < 0) throw remoteMediaTooLarge();
      limit.take(ip, chunk.length);
      watch.count(chunk.length);
      yield chunk;
    }
    // The remaining steps depend on this server only.
    watch.stop();
  }

  #store(
    address: MediaAddress,
    { contentType, fileName }: Pick<MediaFile, 'contentType' | 'fileName'>,
    content: AsyncIterable<Uint8Array>,
  ): Promise<MediaFile> {
    const { database, clock, files, providerStorage, options, rules } = this.#deps;
    const isAuthenticated = options.enable_authenticated_media;
    return files.disk
      .store('remote', content, async (stored) => {
        const properties = { ...stored, contentType, fileName, isAuthenticated };
        await rules?.checkFile?.({
          userId: undefined,
          remoteServer: address.serverName,
          ...properties,
          read: () => files.disk.read('remote', stored.fileId),
        });
        const quarantinedBy = await administratorWhoQuarantined(database.reader(), stored.sha256);
        const isNew = await database.transaction<MediaTables, boolean>(async (writer) => {
          await providerStorage.schedule(writer, 'remote', stored);
          return store.insertRemote(writer, address, clock.now(), { ...properties, quarantinedBy });
        });
        if (!isNew) throw new AlreadyStored();
        return { area: 'remote' as const, ...properties, isQuarantined: quarantinedBy !== undefined };
      })
      .catch(async (error: unknown) => {
        const stored = error instanceof AlreadyStored ? await this.#findStored(address) : undefined;
        if (stored === undefined) throw error;
        return stored;
      });
  }
}

/** Another download has stored the file first: this copy is not needed. */
class AlreadyStored extends Error {}

export const responseTimedOut = () => unknown('The remote server did not answer in time', 504);

/** Returns the error for a file that exceeds `max_upload_size`. Source: client-server API, "Content repository", "Security considerations". */
export const remoteMediaTooLarge = () =>
  new MatrixError(502, 'M_TOO_LARGE', 'This content of a remote server is too large');

/** Returns the error for the client; for incomplete and malformed responses a MatrixError. */
function errorOf(error: unknown): unknown {
  if (error instanceof MalformedMultipart)
    return unknown(`Invalid response of the remote server: ${error.message}`, 502);
  if (!(error instanceof OutboundError)) return error;
  if (error.failure === 'too-large') return remoteMediaTooLarge();
  if (error.failure === 'aborted' || error.failure === 'timeout') return responseTimedOut();
  return unknown('The media could not be fetched completely', 502);
}
