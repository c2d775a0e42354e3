import { Type } from 'typebox';
import type { RouteRequest } from '../../kernel/http/index.ts';
import { patienceOf, type Wish } from './finder.ts';

/** Milliseconds that a client may have its request wait for an upload that is still to come. */
const longestWait = 60_000;

/** Parameters of all that get media. */
export const authedParameters = { timeout_ms: Type.Integer({ default: 20_000 }) };

/** Parameters of the old endpoints. Nothing here is redirected. */
export const openParameters = {
  ...authedParameters,
  allow_remote: Type.Boolean({ default: true }),
  allow_redirect: Type.Boolean({ default: false }),
};

/** These parameters, checked. */
export interface Retrieval {
  readonly timeout_ms: number;
  readonly allow_remote?: boolean;
}

/** @param rest of the path, after the version */
export const openPaths = (rest: string) =>
  ['v3', 'r0', 'v1'].map((version) => `/_proto/media/${version}${rest}`);

/** How media is wanted by who sent a request. @param isOpen without saying who they are */
export const wishOf = (
  { ip, signal }: Pick<RouteRequest, 'ip' | 'signal'>,
  { timeout_ms, allow_remote = true }: Retrieval,
  isOpen: boolean,
): Wish => ({
  patience: patienceOf(timeout_ms, longestWait),
  ip,
  signal,
  isOpen,
  mayFetch: allow_remote,
});
