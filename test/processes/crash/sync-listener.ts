import { type ApiClient, ApiError } from './api-client.ts';
import { type Message, newMessages } from './timeline.ts';

/** A sync token and how many messages of each room had been received when it was issued. */
export interface SyncPoint {
  readonly token: string;
  readonly received: ReadonlyMap<string, number>;
}

/**
 * A user who syncs until the server stops responding, and records every token and the messages in order of
 * arrival.
 */
export class SyncListener {
  readonly client: ApiClient;
  readonly syncPoints: SyncPoint[] = [];
  /** By room id, in order of arrival. */
  readonly #received: ReadonlyMap<string, Message[]>;
  /** Ids of the received messages. */
  readonly #known = new Set<string>();

  constructor(client: ApiClient, roomIds: readonly string[]) {
    this.client = client;
    this.#received = new Map(roomIds.map((roomId) => [roomId, []]));
  }

  /** Returns the messages of the room in order of arrival. */
  received(roomId: string): readonly Message[] {
    return this.#received.get(roomId) ?? [];
  }

  get latestPoint(): SyncPoint {
    const point = this.syncPoints.at(-1);
    if (!point) throw new Error('no sync has completed yet');
    return point;
  }

  async syncUntilDown(): Promise<void> {
    try {
      for (;;) await this.sync(1_000);
    } catch (error) {
      // The test kills the server, so a missing response is expected; an error response fails the test.
      if (error instanceof ApiError) throw error;
    }
  }

  /** Syncs once from the latest token, waiting up to `timeout` milliseconds for changes. */
  async sync(timeout: number): Promise<void> {
    const answer = await this.client.sync(this.syncPoints.at(-1)?.token, timeout);
    const arrived = new Map<string, Message[]>();
    for (const roomId of this.#received.keys()) {
      const messages = await newMessages(this.client, roomId, answer, (eventId) => this.#known.has(eventId));
      arrived.set(roomId, messages);
    }
    for (const [roomId, messages] of arrived) {
      this.#received.get(roomId)?.push(...messages);
      for (const { eventId } of messages) this.#known.add(eventId);
    }
    const received = new Map([...this.#received].map(([roomId, messages]) => [roomId, messages.length]));
    this.syncPoints.push({ token: answer.next_batch, received });
  }
}
