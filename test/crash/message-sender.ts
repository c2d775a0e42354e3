import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiClient, ApiError } from './api-client.ts';

export interface SendAttempt {
  readonly client: ApiClient;
  readonly roomId: string;
  readonly text: string;
  readonly transactionId: string;
  /** Once the server has acknowledged it. */
  eventId?: string;
}

/** A user who sends one message after the other until the server is gone, and remembers all that was tried. */
export class MessageSender {
  readonly attempts: SendAttempt[] = [];
  readonly #client: ApiClient;
  readonly #roomIds: readonly string[];

  constructor(client: ApiClient, roomIds: readonly string[]) {
    this.#client = client;
    this.#roomIds = roomIds;
  }

  async sendUntilDown(): Promise<void> {
    try {
      for (;;) {
        await this.sendOne();
        await sleep(1);
      }
    } catch (error) {
      // A refusal is an error; that nobody answers any more is what the test is about.
      if (error instanceof ApiError) throw error;
    }
  }

  /** Sends one message, to each room in turn. */
  async sendOne(): Promise<SendAttempt> {
    const number = this.attempts.length;
    const sending: SendAttempt = {
      client: this.#client,
      roomId: this.#roomIds[number % this.#roomIds.length]!,
      text: `${this.#client.userId} says ${number}`,
      transactionId: `transaction-${number}`,
    };
    this.attempts.push(sending);
    sending.eventId = await this.#client.send(sending.roomId, sending.text, sending.transactionId);
    return sending;
  }
}
