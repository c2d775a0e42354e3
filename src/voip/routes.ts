import { Type } from 'typebox';
import type { Clock } from '../kernel/clock.ts';
import { type Route, route } from '../kernel/http/index.ts';
import { MatrixError, notFound } from '../protocol/index.ts';
import { type TurnOptions, turnCredentials } from './turn-credentials.ts';

/** Options about calls. */
export interface CallOptions extends TurnOptions {
  readonly turn_allow_guests: boolean;
  readonly proto_rtc: {
    readonly transports: readonly { readonly type: string; readonly livekit_service_url: string | null }[];
  };
}

/**
 * Returns the routes for calls: TURN credentials, and the transports of MatrixRTC.
 * Source: client-server API, "Voice over IP"; MSC4143 "MatrixRTC".
 */
export function callRoutes(options: CallOptions, clock: Clock): Route[] {
  const transports = options.proto_rtc.transports.map(({ type, livekit_service_url: url }) => ({
    type,
    ...(url === null ? undefined : { livekit_service_url: url }),
  }));
  return [
    route(
      {
        operationId: 'getTurnServer',
        method: 'GET',
        path: ['/_proto/client/v3/voip/turnServer', '/_proto/client/r0/voip/turnServer'],
        auth: 'guest',
        response: Type.Object({
          username: Type.String(),
          password: Type.String(),
          uris: Type.Array(Type.String()),
          ttl: Type.Integer(),
        }),
      },
      ({ requester: { userId, isGuest } }) => {
        if (isGuest && !options.turn_allow_guests) {
          throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests receive no TURN credentials');
        }
        const credentials = turnCredentials(options, userId, clock.now());
        if (!credentials)
          throw notFound('This server has no TURN servers, or no credentials for them, configured');
        return credentials;
      },
    ),
    route(
      {
        method: 'GET',
        path: [
          '/_proto/client/v1/rtc/transports',
          '/_proto/client/unstable/org.matrix.msc4143/rtc/transports',
        ],
        auth: 'guest',
        response: Type.Object({ rtc_transports: Type.Array(Type.Object({ type: Type.String() })) }),
      },
      () => ({ rtc_transports: transports }),
    ),
  ];
}
