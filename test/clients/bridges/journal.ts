import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { IrcMessage } from './irc-connection.ts';

/** A Matrix room and the IRC channel that the bridge connects to it. */
export interface Portal {
  readonly kind: 'portal';
  readonly roomId: string;
  readonly channel: string;
}

/** An event that the bridge has received. */
export interface ReceivedEvent {
  readonly kind: 'event';
  /** Process id of the bridge. */
  readonly run: number;
  readonly id: string;
  readonly roomId: string;
  readonly sender: string;
  readonly text: string;
}

/** A message that the bridge has received from the IRC network. */
export interface ReceivedMessage extends IrcMessage {
  readonly kind: 'message';
  readonly id: string;
}

/** Records that an event or a message has reached the other side. */
interface Relayed {
  readonly kind: 'relayed';
  readonly id: string;
}

type Entry = Portal | ReceivedEvent | ReceivedMessage | Relayed;

/** The memory of a bridge: a file that grows by a line for each entry, so that it survives the end of the process. */
export class Journal {
  readonly #file: string;
  readonly #entries: Entry[];

  constructor(file: string) {
    this.#file = file;
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    this.#entries = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Entry);
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.length;
  }

  get portals(): Portal[] {
    return this.#entries.filter((entry) => entry.kind === 'portal');
  }

  /** Received events. An event that was received twice is contained twice. */
  get events(): ReceivedEvent[] {
    return this.#entries.filter((entry) => entry.kind === 'event');
  }

  /** Returns the events and messages that have not reached the other side. */
  pending(): (ReceivedEvent | ReceivedMessage)[] {
    const relayed = new Set(this.#entries.flatMap((entry) => (entry.kind === 'relayed' ? [entry.id] : [])));
    const received = this.#entries.filter((entry) => entry.kind === 'event' || entry.kind === 'message');
    return received.filter(({ id }) => !relayed.has(id));
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
    appendFileSync(this.#file, `${JSON.stringify(entry)}\n`);
  }
}
