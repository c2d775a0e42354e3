import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiClient, ApiError } from './api-client.ts';

export interface Sending {
  readonly client: ApiClient;
  readonly roomId: string;
  readonly text: string;
  readonly transactionId: string;
  /** Once the server has acknowledged it. */
  eventId?: string;
}

/** A user who sends one message after the other until the server is gone, and remembers all that was tried. */
export class Talker {
  readonly sendings: Sending[] = [];
  readonly #client: ApiClient;
  readonly #roomIds: readonly string[];

  constructor(client: ApiClient, roomIds: readonly string[]) {
    this.#client = client;
    this.#roomIds = roomIds;
  }

  async talk(): Promise<void> {
    try {
      for (;;) {
        await this.say();
        await sleep(1);
      }
    } catch (error) {
      // A refusal is an error; that nobody answers any more is what the test is about.
      if (error instanceof ApiError) throw error;
    }
  }

  /** Sends one message, to each room in turn. */
  async say(): Promise<Sending> {
    const number = this.sendings.length;
    const sending: Sending = {
      client: this.#client,
      roomId: this.#roomIds[number % this.#roomIds.length]!,
      text: `${this.#client.userId} says ${number}`,
      transactionId: `transaction-${number}`,
    };
    this.sendings.push(sending);
    sending.eventId = await this.#client.send(sending.roomId, sending.text, sending.transactionId);
    return sending;
  }
}
