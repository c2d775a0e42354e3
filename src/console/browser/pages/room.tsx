import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/request.ts';
import {
  type Deletion,
  deletionsOf,
  isBlocked,
  type RoomDetails,
  roomDetails,
  roomMembers,
} from '../api/rooms.ts';
import { taskOf } from '../api/server.ts';
import { formatCount } from '../components/format.ts';
import { Badge, Empty, Facts, JobProgress, Page, Section, WhenLoaded } from '../components/layout.tsx';
import { Table } from '../components/table.tsx';
import { type Loaded, useLoaded } from '../shell/loading.ts';
import { addressOf } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';
import { RoomActions } from './room-actions.tsx';
import { RoomBadges } from './rooms.tsx';

/** Milliseconds between two requests for the status of a deletion. */
const deletionInterval = 1_000;

/** Shows a room: its properties, its members, and what administrators can do to it. */
export function RoomPage({ roomId }: { readonly roomId: string }) {
  const { api } = useSession();
  const room = useLoaded((signal) => orNull(roomDetails(api, roomId, signal)), [roomId]);
  const blocked = useLoaded((signal) => isBlocked(api, roomId, signal), [roomId]);
  const deletions = useDeletions(roomId);
  const [reloads, setReloads] = useState(0);
  const reload = () => {
    setReloads(reloads + 1);
    room.reload();
    blocked.reload();
    deletions.reload();
  };
  useChange(progressOf(deletions.value), reload);
  const loadedRoom = room.value;
  return (
    <Page
      title={loadedRoom?.name ?? loadedRoom?.canonical_alias ?? roomId}
      about={loadedRoom?.name ?? roomId}
      up={{ href: addressOf('rooms'), text: 'Rooms' }}
    >
      <NewestDeletion deletions={deletions} />
      <Section title="Room">
        <WhenLoaded loaded={room}>
          {(details) =>
            details ? (
              <Properties room={details} isBlocked={blocked.value === true} />
            ) : (
              <Empty>This server does not know this room (any more).</Empty>
            )
          }
        </WhenLoaded>
        {blocked.value !== undefined && (
          <RoomActions
            roomId={roomId}
            isKnown={Boolean(loadedRoom)}
            isBlocked={blocked.value}
            onDone={reload}
          />
        )}
      </Section>
      {loadedRoom && <Members roomId={roomId} reloads={reloads} />}
    </Page>
  );
}

/** Loads the deletions of a room, and loads them again every second while one of them runs. */
function useDeletions(roomId: string): Loaded<readonly Deletion[]> {
  const { api } = useSession();
  const [isRunning, setRunning] = useState(false);
  const deletions = useLoaded(
    (signal) => deletionsOf(api, roomId, signal),
    [roomId],
    isRunning ? deletionInterval : undefined,
  );
  const runs = deletions.value?.some(({ status }) => status === 'scheduled' || status === 'active') ?? false;
  useEffect(() => setRunning(runs), [runs]);
  return deletions;
}

/** Returns a text that differs for each deletion and status of it; `undefined` until the deletions have been loaded. */
function progressOf(deletions: readonly Deletion[] | undefined): string | undefined {
  const newest = deletions?.at(-1);
  return deletions && (newest ? `${newest.delete_id} ${newest.status}` : 'none');
}

/** Calls `onChange` when `value` changes, except when it becomes defined for the first time. */
function useChange(value: string | undefined, onChange: () => void): void {
  const last = useRef(value);
  useEffect(() => {
    const isChange = last.current !== undefined && last.current !== value;
    last.current = value;
    if (isChange) onChange();
  }, [value]);
}

/** Returns the loaded value; `null` when the server answers 404. */
async function orNull<Value>(loading: Promise<Value>): Promise<Value | null> {
  try {
    return await loading;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

function Properties({ room, isBlocked: blocked }: { room: RoomDetails; isBlocked: boolean }) {
  return (
    <Facts
      facts={[
        ['Room id', <code key="id">{room.room_id}</code>],
        ['Address', room.canonical_alias ?? undefined],
        ['Topic', room.topic ?? undefined],
        [
          'Properties',
          <span key="badges" class="badges">
            {blocked && <Badge kind="bad">Blocked</Badge>}
            {room.tombstoned && <Badge kind="warning">Replaced</Badge>}
            <RoomBadges room={room} />
          </span>,
        ],
        [
          'Members',
          `${formatCount(room.joined_members)} (${formatCount(room.joined_local_members)} of this server)`,
        ],
        ['Creator', room.creator ?? undefined],
        ['Version', room.version ?? undefined],
        ['Join rule', room.join_rules ?? undefined],
        ['History', room.history_visibility ?? undefined],
        ['Guests', room.guest_access === 'can_join' ? 'May join' : 'May not join'],
        ['State events', formatCount(room.state_events)],
      ]}
    />
  );
}

const deletionTexts: Readonly<Record<Deletion['status'], string>> = {
  scheduled: 'The deletion will begin soon.',
  active: 'The room is being deleted.',
  complete: 'The room has been deleted.',
  failed: 'The deletion has failed.',
};

function NewestDeletion({ deletions }: { readonly deletions: Loaded<readonly Deletion[]> }) {
  const newest = deletions.value?.at(-1);
  if (newest === undefined) return null;
  const isRunning = newest.status === 'scheduled' || newest.status === 'active';
  return (
    <Section title="Deletion">
      <p role="status">
        {deletionTexts[newest.status]} {newest.error ?? ''}
      </p>
      {isRunning && <DeletionProgress id={newest.delete_id} />}
      {(newest.shutdown_room?.kicked_users?.length ?? 0) > 0 && (
        <p class="soft">{formatCount(newest.shutdown_room!.kicked_users!.length)} users were removed.</p>
      )}
    </Section>
  );
}

function DeletionProgress({ id }: { readonly id: string }) {
  const { api } = useSession();
  const task = useLoaded((signal) => taskOf(api, 'rooms/deletion', id, signal), [id], deletionInterval);
  return <JobProgress label="Deletion of the room" progress={task.value?.progress} />;
}

/** @param reloads number of reloads; when it changes, the members are loaded again */
function Members({ roomId, reloads }: { readonly roomId: string; readonly reloads: number }) {
  const { api, serverName } = useSession();
  const members = useLoaded((signal) => roomMembers(api, roomId, signal), [roomId, reloads]);
  const isLocal = (userId: string) => userId.endsWith(`:${serverName}`);
  return (
    <Section title="Members">
      <WhenLoaded loaded={members}>
        {(found) => (
          <>
            <Table
              caption="Members"
              rows={found.slice(0, maxMembers).map((userId) => ({ userId }))}
              keyOf={({ userId }) => userId}
              empty="No user is joined."
              columns={[
                {
                  title: 'User',
                  cell: ({ userId }) =>
                    isLocal(userId) ? <a href={addressOf('user', userId)}>{userId}</a> : userId,
                },
                {
                  title: 'Server',
                  cell: ({ userId }) => (isLocal(userId) ? 'This server' : userId.replace(/^[^:]*:/, '')),
                },
              ]}
            />
            {found.length > maxMembers && (
              <p class="soft">and {formatCount(found.length - maxMembers)} more.</p>
            )}
          </>
        )}
      </WhenLoaded>
    </Section>
  );
}

/** Maximum number of members that are shown. */
const maxMembers = 500;
