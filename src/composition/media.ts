import { errorForClient, MalformedResponse, MediaApi, RemoteError } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import { OutboundError } from '../kernel/outbound/index.ts';
import {
  type MediaRequest,
  type MediaServers,
  type MediaSlice,
  openMediaRepository,
  outOfTime,
  tooLargeElsewhere,
} from '../media/index.ts';
import { MatrixError, unknown } from '../protocol/index.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { Shutdown } from './shutdown.ts';

/** What others need of media. */
export interface Media {
  /** Absent where another process has the media repository. */
  readonly repository: MediaSlice | undefined;
  readonly routes: readonly Route[];
}

/** Opens the media repository, unless another process has it. */
export async function startMedia(kernel: Kernel, federation: Federation, shutdown: Shutdown): Promise<Media> {
  const { media: options, rateLimits } = kernel.configuration;
  if (!options.enable_media_repo) return { repository: undefined, routes: [] };
  const repository = await openMediaRepository({
    ...kernel,
    log: kernel.namedLog('media'),
    servers: mediaServers(federation),
    limits: {
      create: kernel.userLimiter(rateLimits.rc_media_create),
      remote: kernel.limiter({
        per_second: options.remote_media_download_per_second,
        burst_count: options.remote_media_download_burst_count,
      }),
    },
    options,
  });
  shutdown.add('media', () => repository.stop());
  return { repository, routes: repository.routes };
}

/** Redirects on the way to where a server has said that its media is. */
const maxRedirects = 3;

/** Milliseconds, when the signal does not end it before. */
const longestFetch = 15 * 60_000;

function mediaServers({ requests, http }: Federation): MediaServers {
  const api = new MediaApi(requests);
  return {
    download: ({ serverName, mediaId }, request) => told(request, api.download(serverName, mediaId, request)),
    downloadOpenly: ({ serverName, mediaId }, request) =>
      told(request, api.downloadUnauthenticated(serverName, mediaId, request)),
    fetch: (url, { maxBody, signal }) =>
      told({ signal }, http.open(url, { timeout: longestFetch, maxBody, signal, redirects: maxRedirects })),
  };
}

/** An answer, or what clients are told when there is none. */
async function told<T>({ signal }: Pick<MediaRequest, 'signal'>, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (signal.aborted) throw outOfTime();
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
  if (isTooLarge) return tooLargeElsewhere();
  if (error instanceof RemoteError && error.status === 404) {
    return new MatrixError(404, 'M_NOT_FOUND', 'There is no such media');
  }
  if (cause instanceof OutboundError) return unknown('The media could not be fetched', 502);
  return errorForClient(error);
}
