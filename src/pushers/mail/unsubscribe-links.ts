import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Pusher } from '../pusher.ts';

/** The pusher whose mails a link ends, by the fields that identify it. */
type Subscription = Pick<Pusher, 'userId' | 'appId' | 'pushkey'>;

/** The path of links that end a subscription, as clients see it, with the prefix `/_synapse`. */
export const unsubscribePath = '/_synapse/client/unsubscribe';

/** Makes and checks the links that end a subscription without a login: they are signed, and valid for one pusher. */
export class UnsubscribeLinks {
  readonly #baseUrl: string;
  readonly #key: Uint8Array;

  /**
   * @param baseUrl URL where clients reach this server, without a slash at its end
   * @param key signs the links: `macaroon_secret_key`
   */
  constructor(baseUrl: string, key: Uint8Array) {
    this.#baseUrl = baseUrl;
    this.#key = key;
  }

  /** Returns the link that ends a subscription. */
  of(subscription: Subscription): string {
    const { userId: user_id, appId: app_id, pushkey } = subscription;
    const query = new URLSearchParams({ user_id, app_id, pushkey, token: this.#sign(subscription) });
    return `${this.#baseUrl}${unsubscribePath}?${query}`;
  }

  /** Reports whether the link of a subscription has this token. */
  isValid(subscription: Subscription, token: string): boolean {
    const [received, expected] = [Buffer.from(token), Buffer.from(this.#sign(subscription))];
    return received.length === expected.length && timingSafeEqual(received, expected);
  }

  #sign({ userId, appId, pushkey }: Subscription): string {
    const text = JSON.stringify(['unsubscribe', userId, appId, pushkey]);
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }
}
