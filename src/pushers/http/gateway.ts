import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import { isJsonObject, type JsonObject } from '../../protocol/index.ts';
import type { Pusher } from '../pusher.ts';
import { gatewayUrlOf } from '../pusher-request.ts';
import type { GatewaySlots } from './gateway-slots.ts';

/** Timeout of a request in milliseconds. */
const timeout = 30_000;

/** Maximum bytes of a response. */
const maxBody = 65_536;

/** Sends notifications to push gateways. Source: push gateway API, `POST /notify`. */
export class Gateways {
  readonly #http: Pick<OutboundHttp, 'fetch'>;
  readonly #slots: GatewaySlots;

  constructor(http: Pick<OutboundHttp, 'fetch'>, slots: GatewaySlots) {
    this.#http = http;
    this.#slots = slots;
  }

  /**
   * Sends a notification.
   * @returns 'rejected' when the gateway rejects the push key permanently
   * @throws OutboundError when no complete response arrives; Error for a status other than 2xx and for a pusher without
   * a valid URL
   */
  async send(
    pusher: Pusher,
    notification: JsonObject,
    signal: AbortSignal,
  ): Promise<'accepted' | 'rejected'> {
    const url = gatewayUrlOf(pusher);
    if (!url) throw new Error('The pusher has no valid URL');
    const { status, body } = await this.#slots.run(
      { host: url.host, userId: pusher.userId },
      pusher.failures > 0,
      () =>
        this.#http.fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(notification),
          timeout,
          maxBody,
          signal,
        }),
    );
    if (status < 200 || status > 299) throw new Error(`The push gateway answered with status ${status}`);
    return rejectedPushKeys(body).includes(pusher.pushkey) ? 'rejected' : 'accepted';
  }
}

/** Returns the rejected push keys; none when the response of the gateway does not have the specified form. */
function rejectedPushKeys(body: Buffer): unknown[] {
  try {
    const response: unknown = JSON.parse(body.toString('utf8'));
    const rejected = isJsonObject(response as JsonObject) ? (response as JsonObject)['rejected'] : undefined;
    return Array.isArray(rejected) ? rejected : [];
  } catch {
    return [];
  }
}
