import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type JsonObject, MatrixError, notFound, parseRoomAlias } from '../../protocol/index.ts';
import type { RoomHead } from '../../room-engine/index.ts';
import { visibleContent } from '../../room-engine/index.ts';
import type { RoomsConfig } from '../config.ts';
import type { Rooms } from '../rooms.ts';
import { type AutoJoinPayload, autoJoinJob } from './auto-join-jobs.ts';

export type AutoJoinOptions = Pick<
  RoomsConfig,
  | 'auto_join_rooms'
  | 'autocreate_auto_join_rooms'
  | 'autocreate_auto_join_rooms_federated'
  | 'autocreate_auto_join_room_preset'
  | 'auto_join_mxid_localpart'
>;

export interface AutoJoinDeps {
  readonly jobs: Jobs;
  readonly log: Logger;
  readonly serverName: string;
  readonly options: AutoJoinOptions;
  readonly rooms: Rooms;
}

/**
 * Joins new users to the rooms of `auto_join_rooms`. Runs as a job, so that the joins survive a restart.
 * Source: the option `auto_join_rooms`.
 */
export class AutoJoin {
  readonly #deps: AutoJoinDeps;

  /** Registers the job; the constructor must be called before jobs are started. */
  constructor(deps: AutoJoinDeps) {
    this.#deps = deps;
    const { jobs, log, options, rooms } = deps;
    jobs.register<AutoJoinPayload>(autoJoinJob, {
      run: async ({ payload: newUser, signal }) => {
        for (const room of options.auto_join_rooms) {
          signal.throwIfAborted();
          await this.#joinOrCreate(rooms, newUser, room).catch((error: unknown) => {
            // A refused join must not prevent the joins of the other rooms.
            if (!(error instanceof MatrixError)) throw error;
            log.warn(
              { err: error, user: newUser.userId, room },
              'Failed to join a new user to an auto-join room',
            );
          });
        }
      },
    });
  }

  async #joinOrCreate(rooms: Rooms, { userId, isFirst }: AutoJoinPayload, room: string): Promise<void> {
    const alias = parseRoomAlias(room);
    const roomId = alias ? await rooms.aliases.find(room) : room;
    if (roomId !== undefined) return this.#join(rooms, userId, roomId);
    const isLocalAlias = alias?.serverName === this.#deps.serverName;
    if (!alias || !isLocalAlias || !isFirst || !this.#deps.options.autocreate_auto_join_rooms) {
      throw notFound('Room not found');
    }
    const newRoomId = await this.#create(rooms, userId, alias.localpart);
    await this.#join(rooms, userId, newRoomId);
  }

  #create(rooms: Rooms, userId: string, localpart: string): Promise<string> {
    const { options } = this.#deps;
    return rooms.creation.create(this.#inviter() ?? userId, {
      preset: options.autocreate_auto_join_room_preset,
      room_alias_name: localpart,
      name: localpart,
      creation_content: { 'm.federate': options.autocreate_auto_join_rooms_federated },
    });
  }

  async #join(rooms: Rooms, userId: string, roomId: string): Promise<void> {
    const head = await rooms.engine.heads.get(roomId);
    if (!head) throw notFound('Room not found');
    const membership = head.membership(userId);
    if (membership === 'join') return;
    const inviter = this.#inviter();
    if (inviter !== undefined && inviter !== userId && !(await isPublic(rooms, head))) {
      if (membership !== 'invite') {
        await rooms.engine.timeline.append(roomId, await rooms.memberships.invitation(inviter, userId));
      }
      if (this.#deps.options.autocreate_auto_join_room_preset === 'trusted_private_chat') {
        await grantCreatorLevel(rooms, head, inviter, userId);
      }
    }
    await rooms.memberships.join(userId, roomId);
  }

  /** The user who creates the rooms and invites to them; `undefined`: not configured. */
  #inviter(): string | undefined {
    const { options, serverName } = this.#deps;
    const localpart = options.auto_join_mxid_localpart;
    return localpart === null ? undefined : `@${localpart}:${serverName}`;
  }
}

const isPublic = async (rooms: Rooms, head: RoomHead) =>
  (await contentOf(rooms, head, 'm.room.join_rules'))['join_rule'] === 'public';

/** Sets the power level of a user to 100, if `inviter` has created the room. */
async function grantCreatorLevel(
  rooms: Rooms,
  head: RoomHead,
  inviter: string,
  userId: string,
): Promise<void> {
  const createEntry = head.entry('m.room.create', '');
  const createEvent = createEntry && (await rooms.engine.events.get(createEntry.nid));
  if (createEvent?.event.sender !== inviter) return;
  const levels = await contentOf(rooms, head, 'm.room.power_levels');
  const content = { ...levels, users: { ...(levels['users'] as JsonObject | undefined), [userId]: 100 } };
  const draft = { type: 'm.room.power_levels', stateKey: '', sender: inviter, content };
  await rooms.engine.timeline.append(head.roomId, draft);
}

async function contentOf(rooms: Rooms, head: RoomHead, type: string): Promise<JsonObject> {
  const entry = head.entry(type, '');
  const stored = entry && (await rooms.engine.events.get(entry.nid));
  return stored ? visibleContent(stored) : {};
}
