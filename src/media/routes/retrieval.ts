import { Type } from 'typebox';
import type { RouteRequest } from '../../kernel/http/index.ts';
import type { MediaReading } from '../moderation/media-access.ts';
import { boundedTimeout, type FindRequest } from './finder.ts';

/** Maximum milliseconds that a client's request may wait for a pending upload. */
const maxTimeout = 60_000;

/** Query parameters of all downloads and thumbnails. */
export const authenticatedParameters = { timeout_ms: Type.Integer({ default: 20_000 }) };

/** Query parameters of the unauthenticated endpoints. `allow_redirect` is ignored: this server never redirects. */
export const unauthenticatedParameters = {
  ...authenticatedParameters,
  allow_remote: Type.Boolean({ default: true }),
  allow_redirect: Type.Boolean({ default: false }),
};

/** Parsed query parameters. */
export interface RetrievalQuery {
  readonly timeout_ms: number;
  readonly allow_remote?: boolean;
}

/** Returns the paths of an unauthenticated endpoint in all versions. @param rest the path after the version */
export const unauthenticatedPaths = (rest: string) =>
  ['v3', 'r0', 'v1'].map((version) => `/_proto/media/${version}${rest}`);

/**
 * Returns the request to `MediaFinder` for a client's request.
 * @param isUnauthenticated whether the request is unauthenticated
 */
export const findRequestOf = (
  { ip, signal }: Pick<RouteRequest, 'ip' | 'signal'>,
  { timeout_ms, allow_remote = true }: RetrievalQuery,
  isUnauthenticated: boolean,
  reading: MediaReading = {},
): FindRequest => ({
  uploadTimeout: boundedTimeout(timeout_ms, maxTimeout),
  ip,
  signal,
  isUnauthenticated,
  mayFetch: allow_remote,
  ...reading,
});
