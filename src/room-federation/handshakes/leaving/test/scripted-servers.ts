import { alice } from '../../../../../test/support/rooms/rooms.ts';
import type { SignedRoom } from '../../../../../test/support/rooms/signed-room.ts';
import { RemoteError, ServerUnavailable } from '../../../../federation-client/index.ts';
import type { JsonObject } from '../../../../protocol/index.ts';

/** Other servers in a room that respond to /make_leave and /send_leave for Alice as a test tells them. */
export class ScriptedServers {
  /** The servers that have received a /make_leave request, in order. */
  readonly requestedServers: string[] = [];
  /** The leave events that the servers have accepted, in order. */
  readonly accepted: [server: string, event: JsonObject][] = [];
  /** The servers that cannot be reached. */
  readonly down = new Set<string>();
  /** The servers that respond to /make_leave with 403 M_FORBIDDEN. */
  readonly refusing = new Set<string>();
  readonly #room: SignedRoom;
  #hold: (() => Promise<void>) | undefined;

  constructor(room: SignedRoom) {
    this.#room = room;
  }

  /** Lets the servers respond only after `proceed` is called; `received` resolves at the first request. */
  holdResponses() {
    const { promise: received, resolve: markReceived } = Promise.withResolvers<void>();
    const { promise: mayAnswer, resolve: proceed } = Promise.withResolvers<void>();
    this.#hold = () => {
      markReceived();
      return mayAnswer;
    };
    return { received, proceed };
  }

  /** Responds to /make_leave. */
  async fetchEventTemplate(server: string, ..._: unknown[]) {
    this.requestedServers.push(server);
    await this.#hold?.();
    if (this.down.has(server)) throw new ServerUnavailable(server);
    if (this.refusing.has(server)) throw new RemoteError(server, 403, { errcode: 'M_FORBIDDEN' });
    const event = this.#room.membershipTemplate(alice, 'leave')['event'] as JsonObject;
    return { roomVersion: this.#room.version.id, event };
  }

  /** Responds to /send_leave. */
  async sendLeave(server: string, { event }: { event: JsonObject }) {
    this.accepted.push([server, event]);
  }
}
