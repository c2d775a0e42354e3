import type { JsonValue, ReceivedEvent, ReferenceLimits, RoomEvent } from '../../protocol/index.ts';
import type { VerifiedEvent } from '../placement/verified-event.ts';
import type { Inquiry } from './inquiry.ts';
import type { RefusedEvents } from './refused-events.ts';
import { isRefusal, type Verifier } from './verifier.ts';

/** What of an answer may be used. */
export class Intake {
  readonly #verifier: Verifier;
  readonly #refused: RefusedEvents;

  constructor(parts: { readonly verifier: Verifier; readonly refused: RefusedEvents }) {
    this.#verifier = parts.verifier;
    this.#refused = parts.refused;
  }

  /**
   * Checks events that a server has answered. Those of another room, that nobody wants, or that are not valid are left
   * out, and of the last it is remembered whose they were.
   * @param isWanted asked before signatures are checked, which is what takes time
   * @returns by event id, in the order of the answer
   */
  async take(
    { roomId, version }: Pick<Inquiry, 'roomId' | 'version'>,
    server: string,
    jsons: readonly JsonValue[],
    isWanted: (event: RoomEvent) => boolean,
    references?: ReferenceLimits,
  ): Promise<Map<string, VerifiedEvent>> {
    const wanted = (await this.#verifier.read(version, jsons, references))
      .filter((one): one is ReceivedEvent => !isRefusal(one))
      .filter(({ event }) => event.roomId === roomId && isWanted(event));
    const unique = [...new Map(wanted.map((one) => [one.event.eventId, one])).values()];
    const taken = new Map<string, VerifiedEvent>();
    for (const [index, checked] of (await this.#verifier.check(unique)).entries()) {
      const { eventId } = unique[index]!.event;
      if (isRefusal(checked)) this.#refused.add(server, eventId);
      else taken.set(eventId, checked);
    }
    return taken;
  }
}
