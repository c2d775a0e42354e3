import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiClient, ApiError } from './api-client.ts';

export interface SendAttempt {
  readonly client: ApiClient;
  readonly roomId: string;
  readonly text: string;
  readonly transactionId: string;
  /** Set when the server has acknowledged the message. */
  eventId?: string;
}

/**
 * A user who sends messages one after another until the server stops responding, and records each attempt.
 */
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
      // The test kills the server, so a missing response is expected; an error response fails the test.
      if (error instanceof ApiError) throw error;
    }
  }

  /** Sends one message, to each of the rooms in turn. */
  async sendOne(): Promise<SendAttempt> {
    const number = this.attempts.length;
    const attempt: SendAttempt = {
      client: this.#client,
      roomId: this.#roomIds[number % this.#roomIds.length]!,
      text: `${this.#client.userId} says ${number}`,
      transactionId: `transaction-${number}`,
    };
    this.attempts.push(attempt);
    attempt.eventId = await this.#client.send(attempt.roomId, attempt.text, attempt.transactionId);
    return attempt;
  }
}
