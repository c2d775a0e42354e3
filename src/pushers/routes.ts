import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import type { RateLimit, RateLimiter } from '../kernel/rate-limits/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { PlainHttpCheck } from './http/plain-http.ts';
import { pusherForClient } from './pusher.ts';
import { type PusherRequest, parseSettings } from './pusher-request.ts';
import type { Pushers } from './pushers.ts';

/** Text without U+0000, which PostgreSQL does not store. */
const text = (maxLength: number) => Type.String({ maxLength, pattern: '^[^\\u0000]*$' });

const nameType = text(1_024);

/** The body of `POST /pushers/set`. Its bounds are those of the specification, or far above what clients send. */
const setBody = Type.Object({
  kind: Type.Union([Type.String({ maxLength: 255 }), Type.Null()]),
  app_id: text(64),
  pushkey: text(512),
  app_display_name: Type.Optional(nameType),
  device_display_name: Type.Optional(nameType),
  profile_tag: Type.Optional(Type.Union([nameType, Type.Null()])),
  lang: Type.Optional(text(255)),
  data: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}))),
  append: Type.Optional(Type.Boolean()),
  'org.matrix.msc3881.enabled': Type.Optional(Type.Boolean()),
});

/** Maximum bytes of a request, and so of `data`, which each notification contains. */
const bodyLimit = 16_384;

/** Rate limit of setting pushers: a user may set the maximum number of pushers at once. */
export const setRate: RateLimit = { per_second: 0.2, burst_count: 100 };

/**
 * The routes of pushers. Source: client-server API, "Push Notifications".
 * @param limit bounds how often each user sets pushers
 * @param allowsPlainHttp whether a gateway at this host may be reached without TLS
 */
export function pusherRoutes(pushers: Pushers, limit: RateLimiter, allowsPlainHttp: PlainHttpCheck): Route[] {
  return [
    route(
      {
        operationId: 'getPushers',
        method: 'GET',
        path: ['/_proto/client/v3/pushers', '/_proto/client/r0/pushers'],
        auth: 'user',
        response: Type.Object({ pushers: Type.Array(Type.Unsafe<JsonObject>(Type.Object({}))) }),
      },
      async ({ requester }) => ({ pushers: (await pushers.list(requester.userId)).map(pusherForClient) }),
    ),
    route(
      {
        operationId: 'postPusher',
        method: 'POST',
        path: ['/_proto/client/v3/pushers/set', '/_proto/client/r0/pushers/set'],
        auth: 'user',
        body: setBody,
        bodyLimit,
        checkRate: ({ requester }) => {
          if (requester && !requester.isUnlimited) limit.check(requester.userId);
        },
      },
      async ({ requester: { userId, deviceId, isUnlimited }, body }) => {
        if (!isUnlimited) limit.take(userId);
        const request: PusherRequest = body;
        const { app_id: appId, pushkey, append = false } = request;
        if (request.kind === null) await pushers.remove(userId, { appId, pushkey });
        else await pushers.set({ userId, deviceId }, await parseSettings(request, allowsPlainHttp), append);
        return {};
      },
    ),
  ];
}
