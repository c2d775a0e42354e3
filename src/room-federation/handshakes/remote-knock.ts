import type { Placement, StoredEvent } from '../../room-engine/index.ts';
import { askInTurn } from './ask-in-turn.ts';
import { type HandshakeDeps, knownVersions } from './handshake-deps.ts';
import { HandshakeFailure } from './handshake-failure.ts';
import type { JoinPlace } from './joining/remote-join.ts';
import { readPrejoinState } from './prejoin-state.ts';
import { eventAt } from './templates/event-from-template.ts';
import { checkTemplate } from './templates/template-check.ts';

/**
 * Knocks on rooms that this server is not in.
 * Source: server-server API, "Knocking upon a room".
 */
export class RemoteKnock {
  readonly #deps: HandshakeDeps & { readonly placement: Placement };

  constructor(deps: HandshakeDeps & { readonly placement: Placement }) {
    this.#deps = deps;
  }

  /** @throws MatrixError that says best why no server has taken the knock */
  knock(place: JoinPlace): Promise<StoredEvent> {
    return askInTurn(place.servers, this.#deps.clock, (server, ignoreBackoff) =>
      this.#at(server, place, ignoreBackoff),
    );
  }

  async #at(server: string, wanted: JoinPlace, ignoreBackoff: boolean): Promise<StoredEvent> {
    const { peers, incoming, placement, engine } = this.#deps;
    const { roomId, userId, content } = wanted;
    const head = await engine.heads.get(roomId);
    const prepared = await peers.fetchTemplate(server, 'knock', wanted, knownVersions, { ignoreBackoff });
    const { version, place } = checkTemplate(prepared, { server, roomId, userId, membership: 'knock' });
    if (head?.isEntered && head.version !== version) {
      throw new HandshakeFailure(server, 'the room has another version');
    }
    const own = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
    const built = eventAt(
      place,
      { ...own, content: { ...content, membership: 'knock' } },
      version,
      this.#deps,
    );
    const { eventId, pdu } = built.event;
    const shown = await peers.sendKnock(server, { roomId, eventId, event: pdu }, { ignoreBackoff });
    const { state } = await readPrejoinState(incoming, { roomId, version }, shown);
    return placement.outOfBand({ roomId, version }, built, { state, server });
  }
}
