import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { Typing, TypingChange } from '../../typing/index.ts';
import type { FederationSender } from '../sender/federation-sender.ts';

export interface TypingEduSenderDeps {
  readonly serverName: string;
  readonly engine: Pick<RoomReader, 'heads'>;
  readonly typing: Typing;
  readonly sender: Pick<FederationSender, 'sendEdu'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Milliseconds after which a typing notification is repeated: other servers drop it after 30 to 60 seconds. */
const repeatAfter = 25_000;

/** Lifetime of an EDU in milliseconds. */
const lifetime = 30_000;

/**
 * Sends typing notifications of local users to the servers of the room. Source: server-server API, "Typing
 * Notifications".
 */
export class TypingEduSender {
  readonly #deps: TypingEduSenderDeps;
  /** Timers of the repetitions, by room and user. */
  readonly #repeatTimers = new Map<string, Timer>();

  constructor(deps: TypingEduSenderDeps) {
    this.#deps = deps;
    deps.typing.typingStream.subscribe((change) => this.#changed(change));
  }

  /** Stops the repetition of typing notifications. */
  stop(): void {
    for (const timer of this.#repeatTimers.values()) timer.cancel();
    this.#repeatTimers.clear();
  }

  #changed(change: TypingChange): void {
    const { serverName, clock } = this.#deps;
    if (serverOfUser(change.userId) !== serverName) return;
    const key = `${change.roomId}\0${change.userId}`;
    this.#repeatTimers.get(key)?.cancel();
    this.#repeatTimers.delete(key);
    if (change.typing)
      this.#repeatTimers.set(
        key,
        clock.setTimer(repeatAfter, () => this.#changed(change)),
      );
    void this.#send(change);
  }

  async #send({ roomId, userId, typing }: TypingChange): Promise<void> {
    const { engine, sender, log } = this.#deps;
    try {
      const head = await engine.heads.get(roomId);
      const content = { room_id: roomId, user_id: userId, typing };
      sender.sendEdu(head?.servers.keys() ?? [], {
        type: 'm.typing',
        key: `${roomId}\0${userId}`,
        lifetime,
        content,
      });
    } catch (error) {
      log.error({ err: error }, 'Typing could not be sent to other servers');
    }
  }
}
