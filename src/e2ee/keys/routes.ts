import { Type } from 'typebox';
import type { Clock } from '../../kernel/clock.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, isUserId, missingParam, tooLarge } from '../../protocol/index.ts';
import type { KeyClaiming } from './key-claiming.ts';
import type { KeyQuery } from './key-query.ts';
import type { KeyUpload, KeyUploadBody } from './key-upload.ts';
import { queryText } from './query-text.ts';

const anyObject = Type.Object({}, { additionalProperties: true });

const paths = (path: string) => [`/_proto/client/v3/keys/${path}`, `/_proto/client/r0/keys/${path}`] as const;

/** The name of `fallback_keys` before it was part of the specification. */
const unstableFallbackKeys = 'org.matrix.msc2732.fallback_keys';

/** Milliseconds to wait for other servers when the request sets no timeout. */
const defaultTimeout = 10_000;

/** Maximum milliseconds to wait for other servers. */
const maxTimeout = 60_000;

/** Maximum UTF-8 bytes of a request body: enough for some thousand one-time keys or users. */
const bodyLimit = 1024 * 1024;

/**
 * Maximum number of users in a request: clients request the keys of all members of a room, with several requests for
 * a large room.
 */
const maxUsers = 5_000;

/** Maximum number of devices of one user in a request. */
const maxDevices = 1_000;

/** Maximum number of keys to claim in a request. */
const maxClaims = 5_000;

/** Routes for device keys and one-time keys. Source: client-server API, "Key management API". */
export function keyRoutes(deps: {
  upload: KeyUpload;
  query: KeyQuery;
  claiming: KeyClaiming;
  clock: Clock;
}): Route[] {
  return [uploadRoute(deps.upload), queryRoute(deps.query, deps.clock), claimRoute(deps.claiming)];
}

function uploadRoute(upload: KeyUpload): Route {
  return route(
    {
      operationId: 'uploadKeys',
      method: 'POST',
      path: paths('upload'),
      auth: 'guest',
      body: Type.Object({
        device_keys: Type.Optional(anyObject),
        one_time_keys: Type.Optional(anyObject),
        fallback_keys: Type.Optional(anyObject),
        [unstableFallbackKeys]: Type.Optional(anyObject),
      }),
      bodyLimit,
      response: Type.Object({ one_time_key_counts: Type.Record(Type.String(), Type.Integer()) }),
    },
    async ({ requester: { userId, deviceId }, body }) => {
      if (deviceId === undefined)
        throw missingParam('This access token has no device: a device_id is needed to upload keys');
      const { [unstableFallbackKeys]: unstable, ...stable } = body;
      const keys = (unstable ? { fallback_keys: unstable, ...stable } : stable) as KeyUploadBody;
      return { one_time_key_counts: await upload.upload(userId, deviceId, keys) };
    },
  );
}

function queryRoute(query: KeyQuery, clock: Clock): Route {
  return route(
    {
      operationId: 'queryKeys',
      limitedKind: 'large response',
      method: 'POST',
      path: paths('query'),
      auth: 'guest',
      body: Type.Object({
        timeout: Type.Optional(Type.Integer()),
        device_keys: Type.Record(Type.String(), Type.Array(Type.String(), { maxItems: maxDevices }), {
          maxProperties: maxUsers,
        }),
      }),
      bodyLimit,
    },
    async ({ requester, body }) => {
      const requested = new Map(Object.entries(body.device_keys));
      for (const userId of requested.keys()) checkUserId(userId);
      const response = await query.query(requester.userId, requested, boundedTimeout(body.timeout));
      return new Reply(200, await queryText(response, clock));
    },
  );
}

function claimRoute(claiming: KeyClaiming): Route {
  return route(
    {
      operationId: 'claimKeys',
      method: 'POST',
      path: paths('claim'),
      auth: 'guest',
      body: Type.Object({
        timeout: Type.Optional(Type.Integer()),
        one_time_keys: Type.Record(
          Type.String(),
          Type.Record(Type.String(), Type.String(), { maxProperties: maxDevices }),
          { maxProperties: maxUsers },
        ),
      }),
      bodyLimit,
    },
    ({ body }) => {
      const requests = Object.entries(body.one_time_keys).map(([userId, devices]) => {
        checkUserId(userId);
        // Names with U+0000 belong to no device or algorithm.
        const entries = Object.entries(devices).filter((entry) => !entry.join('').includes('\0'));
        return [userId, new Map(entries)] as const;
      });
      const count = requests.reduce((sum, [, devices]) => sum + devices.size, 0);
      if (count > maxClaims) throw tooLarge(`Claim at most ${maxClaims} keys at once`);
      return claiming.claim(new Map(requests), boundedTimeout(body.timeout));
    },
  );
}

function checkUserId(userId: string): void {
  if (!isUserId(userId)) throw invalidParam(`'${userId.slice(0, 255)}' is not a user id`);
}

const boundedTimeout = (timeout = defaultTimeout) => Math.min(Math.max(timeout, 0), maxTimeout);
