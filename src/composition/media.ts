import { errorForClient, MalformedResponse, MediaApi, RemoteError } from '../federation-client/index.ts';
import { OutboundError } from '../kernel/outbound/index.ts';
import {
  type MediaRepositoryRules,
  type MediaRequest,
  type MediaServers,
  type MediaSlice,
  openMediaRepository,
  previewImageShare,
  remoteMediaTooLarge,
  responseTimedOut,
} from '../media/index.ts';
import { MatrixError, unknown } from '../protocol/index.ts';
import type { Federation } from './federation.ts';
import { openHttpToConfiguredServers } from './http-to-configured-servers.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';

/** Opens the media repository. @returns `undefined` when `enable_media_repo` is off */
export async function startMedia(
  kernel: Kernel,
  federation: Federation,
  opened: OpenedSlices,
  rules?: MediaRepositoryRules,
): Promise<MediaSlice | undefined> {
  const { media: options, rateLimits } = kernel.configuration;
  if (!options.enable_media_repo) return undefined;
  const http = openHttpToConfiguredServers(kernel, 'media_storage_connection_pools');
  opened.add('requests to media storage', { stop: () => http.close() });
  const repository = await openMediaRepository({
    ...kernel,
    http,
    environment: process.env,
    log: kernel.namedLog('media'),
    servers: mediaServers(federation),
    limits: {
      create: kernel.userLimiter(rateLimits.rc_media_create),
      remote: kernel.limiter({
        per_second: options.remote_media_download_per_second,
        burst_count: options.remote_media_download_burst_count,
      }),
      previewImages: kernel.userLimiter(previewImageShare),
    },
    options,
    rules,
  });
  return opened.add('media', repository);
}

/** Maximum number of redirects to follow from the URL that a remote server gives for its media. */
const maxRedirects = 3;

/**
 * Timeout in milliseconds of a request to the URL that a remote server gives for its media. The signal of the
 * `MediaRequest` may end it earlier.
 */
const fetchTimeout = 15 * 60_000;

function mediaServers({ requests, http }: Federation): MediaServers {
  const api = new MediaApi(requests);
  return {
    download: ({ serverName, mediaId }, request) =>
      forClient(request, api.download(serverName, mediaId, request)),
    downloadUnauthenticated: ({ serverName, mediaId }, request) =>
      forClient(request, api.downloadUnauthenticated(serverName, mediaId, request)),
    fetch: (url, { maxBody, signal }) =>
      forClient(
        { signal },
        http.open(url, { timeout: fetchTimeout, maxBody, signal, redirects: maxRedirects }),
      ),
  };
}

/** Returns a response; turns its failure into the error for the client. */
async function forClient<T>({ signal }: Pick<MediaRequest, 'signal'>, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (signal.aborted) throw responseTimedOut();
    throw errorAboutMedia(error);
  }
}

function errorAboutMedia(error: unknown): unknown {
  if (error instanceof RemoteError && error.errcode === 'M_NOT_YET_UPLOADED') {
    return new MatrixError(504, 'M_NOT_YET_UPLOADED', 'This content has not been uploaded yet');
  }
  const cause = error instanceof MalformedResponse ? error.cause : error;
  const isTooLarge =
    (error instanceof RemoteError && error.errcode === 'M_TOO_LARGE') ||
    (cause instanceof OutboundError && cause.failure === 'too-large');
  if (isTooLarge) return remoteMediaTooLarge();
  if (error instanceof RemoteError && error.status === 404) {
    return new MatrixError(404, 'M_NOT_FOUND', 'Media not found');
  }
  if (cause instanceof OutboundError) return unknown('Failed to fetch the media', 502);
  return errorForClient(error);
}
