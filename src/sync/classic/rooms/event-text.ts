import type { Clock } from '../../../kernel/clock.ts';
import { LoadOnce } from '../../../kernel/load-once.ts';
import type { StoredEvent } from '../../../room-engine/index.ts';
import type { ClientEvents, EventRelations, Viewer, VisibleEvent } from '../../../rooms/index.ts';
import type { Recipient } from '../recipient.ts';

/** What is told of the reader of an event who was in the room when it was sent. */
const asJoined = ',"membership":"join"';

/** The text of an event around its age, which changes, and its reader's membership, which is told of some only. */
export class SharedText {
  /** The event was redacted by that one when the text was made. */
  readonly redactedBy: number | undefined;
  readonly #sentAt: number;
  readonly #beforeAge: string;
  readonly #afterAge: string;

  constructor(text: { sentAt: number; redactedBy: number | undefined; beforeAge: string; afterAge: string }) {
    this.redactedBy = text.redactedBy;
    this.#sentAt = text.sentAt;
    this.#beforeAge = text.beforeAge;
    this.#afterAge = text.afterAge;
  }

  /** @param now milliseconds since 1970 */
  at(now: number, membership: VisibleEvent['membership']): string {
    const age = Math.max(0, now - this.#sentAt);
    return this.#beforeAge + age + (membership === undefined ? '' : asJoined) + this.#afterAge;
  }
}

/**
 * Events as the members of their room get them in a sync, as JSON text. It is made once for all members: they differ
 * only in what their own devices have sent, and in what is told of events that others relate to.
 */
export class EventText {
  readonly #clientEvents: ClientEvents;
  readonly relations: EventRelations;
  readonly #clock: Clock;
  readonly #texts = new WeakMap<StoredEvent, SharedText>();
  readonly #making = new LoadOnce<StoredEvent, void>();

  constructor(clientEvents: ClientEvents, clock: Clock) {
    this.#clientEvents = clientEvents;
    this.relations = clientEvents.relations;
    this.#clock = clock;
  }

  /** The texts of events as the recipient sees them and their filter wants them, in the same order. */
  async render(events: readonly VisibleEvent[], recipient: Recipient): Promise<string[]> {
    const { format, selectFields } = recipient.filter;
    const texts =
      format === 'client'
        ? await this.#forClient(events, recipient)
        : (await this.#clientEvents.render(events, recipient, format)).map((event) => JSON.stringify(event));
    return selectFields ? texts.map((text) => JSON.stringify(selectFields(JSON.parse(text)))) : texts;
  }

  async #forClient(events: readonly VisibleEvent[], viewer: Viewer): Promise<string[]> {
    const known = this.relations.parents(events);
    const parents = 'then' in known ? await known : known;
    const isShared = (event: VisibleEvent) => this.#isShared(event, viewer) && !parents.has(event.stored.nid);
    const special = events.filter((event) => !isShared(event));
    const missing = events.filter((event) => isShared(event) && !this.peek(event.stored));
    const own =
      special.length === 0 ? [] : await this.#clientEvents.render(special, viewer, 'without room id');
    await Promise.all(missing.map((event) => this.prepare(event)));
    const ownTexts = new Map(special.map(({ stored }, index) => [stored, JSON.stringify(own[index])]));
    const now = this.#clock.now();
    return events.map(({ stored, membership }) => {
      const text = ownTexts.get(stored);
      if (text !== undefined) return text;
      const shared = this.peek(stored);
      if (!shared) throw new Error('an event was not rendered');
      return shared.at(now, membership);
    });
  }

  /** Whether the viewer gets what every member gets. */
  #isShared({ stored, membership }: VisibleEvent, viewer: Viewer): boolean {
    return (membership === 'join' || membership === undefined) && stored.event.sender !== viewer.userId;
  }

  /** What members get who have not sent the event themselves, when `prepare` has made it. */
  peek(stored: StoredEvent): SharedText | undefined {
    const text = this.#texts.get(stored);
    return text?.redactedBy === stored.redactedBy ? text : undefined;
  }

  /** A new event wakes all members at once; it is rendered for the first of them. */
  async prepare(event: VisibleEvent): Promise<void> {
    await this.#making.run(event.stored, () => this.#make(event));
    // It may have been redacted while it was being rendered.
    if (!this.peek(event.stored)) await this.prepare(event);
  }

  async #make({ stored, membership }: VisibleEvent): Promise<void> {
    const { redactedBy } = stored;
    const nobody = { userId: '', deviceId: undefined };
    const [event] = await this.#clientEvents.render([{ stored, membership }], nobody, 'without room id');
    if (!event) throw new Error('an event was not rendered');
    const { unsigned, ...rest } = event;
    const { age: _age, membership: _membership, ...others } = (unsigned ?? {}) as Record<string, unknown>;
    const head = JSON.stringify(rest).slice(0, -1);
    const tail = JSON.stringify(others);
    const text = new SharedText({
      sentAt: stored.event.originServerTs,
      redactedBy,
      beforeAge: `${head},"unsigned":{"age":`,
      afterAge: `${tail === '{}' ? '}' : `,${tail.slice(1)}`}}`,
    });
    this.#texts.set(stored, text);
  }
}
