import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TlsOptions } from 'node:tls';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';

/** A device of a notification. Source: push gateway API, `POST /notify`. */
export interface NotifiedDevice {
  readonly app_id: string;
  readonly pushkey: string;
  readonly pushkey_ts?: number;
  readonly data?: Record<string, unknown>;
  readonly tweaks?: Record<string, unknown>;
}

/** A notification as the gateway has received it. */
export interface ReceivedNotification extends Record<string, unknown> {
  readonly event_id?: string;
  readonly counts?: { readonly unread?: number };
  readonly devices: readonly NotifiedDevice[];
}

/** How the gateway answers requests. */
export type GatewayBehaviour = 'accept' | 'fail' | 'never answer';

/** A push gateway on the loopback address, as the push gateway API describes it. */
export class PushGateway {
  /** Accepted notifications in their order of arrival. */
  readonly received: ReceivedNotification[] = [];
  /** Push keys that the gateway rejects. */
  readonly rejected = new Set<string>();
  behaviour: GatewayBehaviour = 'accept';
  /** Number of requests whose bodies have arrived, however they were answered. */
  attempts = 0;
  /** Number of connections that were opened. */
  connections = 0;
  /** Number of requests that are being processed. */
  open = 0;
  /** Maximum of `open` so far. */
  maxOpen = 0;
  readonly #served: LoopbackServer;
  readonly #isSecure: boolean;
  #waiting: (() => void)[] = [];

  private constructor(served: LoopbackServer, isSecure: boolean) {
    this.#served = served;
    this.#isSecure = isSecure;
    served.server.on('connection', () => this.connections++);
  }

  /** @param tls serves over TLS */
  static async start(tls?: TlsOptions): Promise<PushGateway> {
    let gateway: PushGateway | undefined;
    const served = await serveOnLoopback((request, response) => void gateway?.answer(request, response), tls);
    gateway = new PushGateway(served, tls !== undefined);
    return gateway;
  }

  /** Returns the URL of the gateway. Clients set it in pushers. @param host by default the loopback address */
  url(host = '127.0.0.1'): string {
    return `${this.#isSecure ? 'https' : 'http'}://${host}:${this.#served.port}/_matrix/push/v1/notify`;
  }

  stop(): Promise<void> {
    return this.#served.close();
  }

  /** Resolves with the notification at an index, from 0, as soon as it was accepted. */
  async notification(index: number): Promise<ReceivedNotification> {
    await this.until(() => this.received.length > index);
    return this.received[index]!;
  }

  /** Resolves when this many requests have arrived, accepted or not. */
  attempted(count: number): Promise<void> {
    return this.until(() => this.attempts >= count);
  }

  /** Resolves when a condition holds, which is checked at once and after each request. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    this.maxOpen = Math.max(this.maxOpen, ++this.open);
    response.on('close', () => this.open--);
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.attempts++;
    assert.deepEqual([request.method, request.url], ['POST', '/_matrix/push/v1/notify']);
    assert.equal(request.headers['content-type'], 'application/json');
    const { notification } = JSON.parse(Buffer.concat(chunks).toString()) as {
      notification: ReceivedNotification;
    };
    for (const { app_id, pushkey } of notification.devices) {
      assert.deepEqual([typeof app_id, typeof pushkey], ['string', 'string']);
    }
    if (this.behaviour === 'accept') {
      this.received.push(notification);
      const rejected = notification.devices
        .map(({ pushkey }) => pushkey)
        .filter((key) => this.rejected.has(key));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ rejected }));
    } else if (this.behaviour === 'fail') {
      response.writeHead(502).end();
    }
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
