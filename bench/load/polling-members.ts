import { type Account, expectOk, syncPath } from './account.ts';
import { nextBatch } from './next-batch.ts';

/** Precedes the number of a message in its text. */
const marker = Buffer.from('number-');
const filter = JSON.stringify({ room: { timeline: { limit: 50 } } });

/** A message that some members have not received. */
interface Message {
  /** Time of `performance.now()`. */
  readonly sentAt: number;
  /** Number of members who have not received it. */
  undelivered: number;
  delivered(): void;
}

/**
 * Members of a room who wait for messages, each with a long poll. Records when each message reaches each member.
 */
export class PollingMembers {
  readonly members: readonly Account[];
  /** Messages on the way, by number. */
  readonly #messages = new Map<number, Message>();
  #latencies: number[] = [];
  #sent = 0;
  #isOpen = true;
  #fail!: (error: unknown) => void;
  /** Rejects when a poll fails. */
  readonly #failure = new Promise<never>((_, reject) => {
    this.#fail = reject;
  });

  constructor(members: readonly Account[]) {
    this.members = members;
    this.#failure.catch(() => {});
  }

  /** Resolves when all members have synced once; they wait for messages from then on. */
  async listen(): Promise<void> {
    for (const member of this.members) {
      const answer = await member.sync({ timeout: '0', filter, set_presence: 'offline' });
      this.#poll(member, nextBatch(answer)).catch((error) => this.#isOpen && this.#fail(error));
    }
  }

  /**
   * Sends a message and waits until all members have received it.
   * @param send sends a text to the room
   * @param text the end of the message, after its number
   */
  async deliver(send: (text: string) => Promise<void>, text: string): Promise<void> {
    const number = this.#sent++;
    const delivered = new Promise<void>((delivered) => {
      this.#messages.set(number, { sentAt: performance.now(), undelivered: this.members.length, delivered });
    });
    await send(`number-${number}- ${text}`);
    await Promise.race([delivered, this.#failure]);
  }

  /**
   * Returns the milliseconds between the sending of each message and its arrival at each member, since the last call.
   */
  takeLatencies(): number[] {
    const latencies = this.#latencies;
    this.#latencies = [];
    return latencies;
  }

  close(): void {
    this.#isOpen = false;
    for (const { connection } of this.members) connection.close();
  }

  async #poll(member: Account, first: string | undefined): Promise<void> {
    let since = first;
    while (this.#isOpen) {
      const path = syncPath({ since: since ?? '', timeout: '30000', filter, set_presence: 'offline' });
      const answer = expectOk(await member.connection.request('GET', path), 'sync');
      this.#receive(answer);
      since = nextBatch(answer);
    }
  }

  #receive(answer: Buffer): void {
    const now = performance.now();
    for (
      let position = answer.indexOf(marker);
      position >= 0;
      position = answer.indexOf(marker, position + marker.length)
    ) {
      const digits = answer.toString('latin1', position + marker.length, position + marker.length + 10);
      const number = Number.parseInt(digits, 10);
      const message = this.#messages.get(number);
      if (!message) continue;
      this.#latencies.push(now - message.sentAt);
      if (--message.undelivered > 0) continue;
      this.#messages.delete(number);
      message.delivered();
    }
  }
}
