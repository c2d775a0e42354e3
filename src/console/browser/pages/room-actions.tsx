import { deleteRoom, joinRoom, makeRoomAdministrator, purgeHistory, setBlocked } from '../api/rooms.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { Checkbox, TextField } from '../components/fields.tsx';
import { useSession } from '../shell/session-context.ts';

interface RoomActionsProps {
  readonly roomId: string;
  /** Whether this server has the room. Rooms that it does not have can only be blocked. */
  readonly isKnown: boolean;
  readonly isBlocked: boolean;
  readonly onDone: () => void;
}

/** Buttons for the actions of administrators on a room. */
export function RoomActions({ roomId, isKnown, isBlocked, onDone }: RoomActionsProps) {
  const { api, userId } = useSession();
  const block = async () => {
    await setBlocked(api, roomId, !isBlocked);
    return isBlocked ? 'The room is not blocked any more.' : 'The room has been blocked.';
  };
  const remove = async (fields: FormData) => {
    await deleteRoom(api, roomId, { block: fields.has('block'), purge: fields.has('purge') });
    return 'The deletion has begun.';
  };
  const purge = async (fields: FormData) => {
    const before = new Date(textOf(fields, 'before')).getTime();
    await purgeHistory(api, roomId, before, fields.has('local'));
    return 'The purge has begun: see "Background jobs".';
  };
  const promote = async (fields: FormData) => {
    const user = textOf(fields, 'user');
    await makeRoomAdministrator(api, roomId, user);
    return `${user} is an administrator of the room now.`;
  };
  const join = async (fields: FormData) => {
    const user = textOf(fields, 'user');
    await joinRoom(api, roomId, user);
    return `${user} has joined the room.`;
  };
  return (
    <div class="actions wrap">
      {isKnown && (
        <>
          <Action
            label="Add a user"
            title="Join a user to this room"
            confirm="Join"
            action={join}
            onDone={onDone}
          >
            <TextField label="User id" name="user" value={userId} required />
          </Action>
          <Action
            label="Make room administrator"
            title="Give a user all rights in this room"
            confirm="Give the rights"
            action={promote}
            onDone={onDone}
          >
            <TextField
              label="User id"
              name="user"
              value={userId}
              required
              hint="Works only while some user of this server is in the room and may change rights there."
            />
          </Action>
        </>
      )}
      <Action
        label={isBlocked ? 'Unblock' : 'Block'}
        title={isBlocked ? 'Unblock this room?' : 'Block this room?'}
        kind={isBlocked ? 'plain' : 'danger'}
        action={block}
        onDone={onDone}
      >
        <p>
          {isBlocked
            ? 'Users of this server will be able to join the room.'
            : 'Users of this server will not be able to join the room. Members stay in it.'}
        </p>
      </Action>
      {isKnown && (
        <Action
          label="Purge history"
          title="Delete old messages of this room?"
          confirm="Delete them"
          kind="danger"
          action={purge}
          onDone={onDone}
        >
          <p>They are removed from the database of this server. State and the newest message stay.</p>
          <TextField label="Sent before" name="before" type="datetime-local" required />
          <Checkbox
            label="Also messages of users of this server"
            name="local"
            hint="Other servers possibly have no copy of them."
          />
        </Action>
      )}
      {isKnown && (
        <Action
          label="Delete"
          title="Delete this room?"
          confirm="Delete the room"
          kind="danger"
          action={remove}
          onDone={onDone}
        >
          <p>All users of this server leave the room. Other servers keep their copies of it.</p>
          <Checkbox label="Remove the room and its messages from the database" name="purge" checked />
          <Checkbox label="Block the room, so that users of this server cannot join it again" name="block" />
        </Action>
      )}
    </div>
  );
}
