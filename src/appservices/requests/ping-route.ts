import { Type } from 'typebox';
import type { AppserviceRegistry } from '../../appservice-registry/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import { OutboundError } from '../../kernel/outbound/index.ts';
import { forbidden, MatrixError } from '../../protocol/index.ts';
import type { ServiceAnswer, ServiceClient } from './service-client.ts';

export interface PingDeps {
  readonly registry: AppserviceRegistry;
  readonly client: ServiceClient;
  readonly clock: Clock;
  /** Called with the id of a service that has answered a ping with success. */
  readonly onAnswer: (serviceId: string) => void;
}

/** Milliseconds for which the request waits for the response of the service. */
const timeout = 20_000;

/** Maximum number of UTF-16 units of the service's response that an error quotes. */
const maxQuoted = 1_000;

/** The route of pings. Source: client-server API, `POST /_matrix/client/v1/appservice/{appserviceId}/ping`. */
export function pingRoute({ registry, client, clock, onAnswer }: PingDeps): Route {
  return route(
    {
      operationId: 'pingAppservice',
      method: 'POST',
      path: '/_proto/client/v1/appservice/:appserviceId/ping',
      auth: 'appservice',
      body: Type.Object({ transaction_id: Type.Optional(Type.String({ maxLength: 1_000 })) }),
      response: Type.Object({ duration_ms: Type.Integer() }),
    },
    async ({ params: { appserviceId }, requester, body, signal }) => {
      const service = registry.byId(appserviceId);
      if (!service || requester.appservice !== appserviceId) {
        throw forbidden('The access token does not belong to this application service');
      }
      if (service.registration.url === undefined) {
        throw new MatrixError(400, 'M_URL_NOT_SET', 'The application service has no URL');
      }
      const startedAt = clock.monotonic();
      const request = {
        method: 'POST',
        path: '/_proto/app/v1/ping',
        body: JSON.stringify(body),
        timeout,
        signal,
      } as const;
      const answer = await client.send(service, request).catch(throwPingError);
      checkStatus(answer);
      onAnswer(appserviceId);
      return { duration_ms: Math.round(clock.monotonic() - startedAt) };
    },
  );
}

function checkStatus({ status, text }: ServiceAnswer): void {
  if (status >= 200 && status < 300) return;
  throw new MatrixError(502, 'M_BAD_STATUS', `The application service answered ${status}`, {
    status,
    body: text.slice(0, maxQuoted),
  });
}

function throwPingError(error: unknown): never {
  if (!(error instanceof OutboundError)) throw error;
  if (error.failure === 'timeout') {
    throw new MatrixError(504, 'M_CONNECTION_TIMEOUT', 'The application service did not answer in time');
  }
  throw new MatrixError(
    502,
    'M_CONNECTION_FAILED',
    `The application service cannot be reached: ${error.message}`,
  );
}
