import type { JsonValue } from '../../protocol/index.ts';
import type { VerifiedEvent } from '../../room-engine/index.ts';
import { type Inquiry, requestTimeout } from '../asking/inquiry.ts';
import type { Intake } from '../checking/intake.ts';
import type { RefusedEvents } from '../checking/refused-events.ts';
import type { RemoteEvents } from '../remote-servers.ts';

/** Requests to one server at the same time; events whose signatures are checked together; failures that are enough. */
const [atOnce, checkedTogether, maxFailures] = [8, 200, 20];

/** Fetches events one by one, which is right for few of them. */
export class EventFetcher {
  readonly #remote: RemoteEvents;
  readonly #intake: Intake;
  readonly #refused: RefusedEvents;

  constructor(parts: {
    readonly remote: RemoteEvents;
    readonly intake: Intake;
    readonly refused: RefusedEvents;
  }) {
    this.#remote = parts.remote;
    this.#intake = parts.intake;
    this.#refused = parts.refused;
  }

  /** Those of the events that some server of the inquiry gives. Who does not have an event may have others. */
  async fetch(inquiry: Inquiry, eventIds: Iterable<string>): Promise<Map<string, VerifiedEvent>> {
    const missing = new Set(eventIds);
    const found = new Map<string, VerifiedEvent>();
    for (const server of await inquiry.servers()) {
      if (missing.size === 0 || inquiry.signal.aborted) break;
      const ids = [...missing].filter((id) => !this.#refused.has(server, id));
      for (let start = 0; start < ids.length; start += checkedTogether) {
        const part = ids.slice(start, start + checkedTogether);
        const { jsons, gaveUp } = await this.#ask(inquiry, server, part);
        const isWanted = ({ eventId }: { eventId: string }) => missing.has(eventId);
        for (const [id, event] of await this.#intake.take(inquiry, server, jsons, isWanted)) {
          found.set(id, event);
          missing.delete(id);
        }
        if (gaveUp) break;
      }
    }
    return found;
  }

  async #ask({ signal }: Inquiry, server: string, ids: readonly string[]) {
    const jsons: JsonValue[] = [];
    let next = 0;
    let failures = 0;
    const askOn = async () => {
      while (next < ids.length && failures < maxFailures && !signal.aborted) {
        const id = ids[next++]!;
        try {
          jsons.push(await this.#remote.event(server, id, { signal, timeout: requestTimeout.short }));
        } catch {
          failures++;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, ids.length) }, askOn));
    return { jsons, gaveUp: failures >= maxFailures };
  }
}
