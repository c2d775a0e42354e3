import {
  type AccountDataOfType,
  removeDevice,
  type UserDevice,
  type UserPusher,
  type UserRoom,
  userAccountData,
  userDevices,
  userPushers,
  userRooms,
} from '../api/users.ts';
import { Action } from '../components/dialog.tsx';
import { formatCount } from '../components/format.ts';
import { Section, WhenLoaded } from '../components/layout.tsx';
import { type Column, List, Table } from '../components/table.tsx';
import { Ago } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { addressOf, type PageAddress } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

/** Lists the devices of a user, each with a button that ends its session. */
export function UserDevices({ userId }: { readonly userId: string }) {
  const { api } = useSession();
  const devices = useLoaded((signal) => userDevices(api, userId, signal), [userId]);
  const columns: readonly Column<UserDevice>[] = [
    {
      title: 'Device',
      cell: (device) => (
        <span class="name">
          <strong>{device.display_name ?? device.device_id}</strong>
          <small>{device.last_seen_user_agent ?? device.device_id}</small>
        </span>
      ),
    },
    { title: 'IP address', cell: (device) => device.last_seen_ip ?? '–' },
    { title: 'Last seen', cell: (device) => <Ago at={device.last_seen_ts} /> },
    {
      title: '',
      cell: (device) => (
        <Action
          label="Log out"
          about={`Log out ${device.display_name ?? device.device_id}`}
          title="End this session?"
          confirm="End the session"
          kind="danger"
          onDone={devices.reload}
          action={async () => {
            await removeDevice(api, userId, device.device_id);
            return 'The session has ended.';
          }}
        >
          <p>
            {userId} will be logged out on {device.display_name ?? device.device_id}. Encryption keys that
            only this device has are lost.
          </p>
        </Action>
      ),
    },
  ];
  return (
    <Section title="Sessions">
      <WhenLoaded loaded={devices}>
        {(rows) => (
          <Table
            caption="Sessions"
            columns={columns}
            rows={rows}
            keyOf={({ device_id }) => device_id}
            empty="This user is not logged in anywhere."
          />
        )}
      </WhenLoaded>
    </Section>
  );
}

const memberships: Readonly<Record<string, string>> = {
  join: 'Joined',
  invite: 'Invited',
  knock: 'Knocked',
  leave: 'Left',
  ban: 'Banned',
};

const roomColumns: readonly Column<UserRoom>[] = [
  {
    title: 'Room',
    cell: (room) => (
      <a class="name" href={addressOf('room', room.room_id)}>
        <strong>{room.name ?? room.canonical_alias ?? room.room_id}</strong>
        {room.name !== null && <small>{room.canonical_alias ?? room.room_id}</small>}
      </a>
    ),
  },
  { title: 'Membership', cell: ({ membership }) => memberships[membership] ?? membership },
  {
    title: 'Members',
    isNumber: true,
    cell: ({ joined_members: members }) => (members === null ? '' : formatCount(members)),
  },
];

/** Lists the rooms of a user. @param address address of the user's page; its query contains the page of the list */
export function UserRooms({ userId, address }: { readonly userId: string; readonly address: PageAddress }) {
  const { api } = useSession();
  return (
    <Section title="Rooms">
      <List
        caption="Rooms"
        address={address}
        columns={roomColumns}
        inputs={[userId]}
        keyOf={({ room_id }) => room_id}
        empty="This user is in no room."
        load={(page, signal) => userRooms(api, userId, page, signal)}
      />
    </Section>
  );
}

const pusherColumns: readonly Column<UserPusher>[] = [
  {
    title: 'App',
    cell: (pusher) => (
      <span class="name">
        <strong>{pusher.app_display_name}</strong>
        <small>{pusher.app_id}</small>
      </span>
    ),
  },
  { title: 'Device', cell: (pusher) => pusher.device_display_name },
  { title: 'Sent to', cell: ({ kind, data, pushkey }) => (kind === 'email' ? pushkey : (data.url ?? '–')) },
];

/** Lists the pushers of a user. */
export function UserPushers({ userId }: { readonly userId: string }) {
  const { api } = useSession();
  const pushers = useLoaded((signal) => userPushers(api, userId, signal), [userId]);
  return (
    <Section title="Push notifications">
      <WhenLoaded loaded={pushers}>
        {(rows) => (
          <Table
            caption="Push notifications"
            columns={pusherColumns}
            rows={rows}
            keyOf={({ app_id, pushkey }) => JSON.stringify([app_id, pushkey])}
            empty="No app of this user gets push notifications."
          />
        )}
      </WhenLoaded>
    </Section>
  );
}

const accountDataColumns: readonly Column<AccountDataOfType>[] = [
  {
    title: 'Type',
    cell: ({ type, content }) => (
      <details>
        <summary>{type}</summary>
        <pre>{JSON.stringify(content, undefined, 2)}</pre>
      </details>
    ),
  },
  {
    title: 'Room',
    cell: ({ roomId }) =>
      roomId === undefined ? 'Whole account' : <a href={addressOf('room', roomId)}>{roomId}</a>,
  },
];

/** Maximum number of entries of account data that are shown. */
const maxEntries = 200;

/** Shows the account data of a user. */
export function UserAccountData({ userId }: { readonly userId: string }) {
  const { api } = useSession();
  const data = useLoaded((signal) => userAccountData(api, userId, signal), [userId]);
  return (
    <Section title="Account data">
      <WhenLoaded loaded={data}>
        {(rows) => (
          <>
            <Table
              caption="Account data"
              columns={accountDataColumns}
              rows={rows.slice(0, maxEntries)}
              keyOf={({ roomId, type }) => JSON.stringify([roomId, type])}
              empty="The apps of this user have stored no account data."
            />
            {rows.length > maxEntries && (
              <p class="soft">and {formatCount(rows.length - maxEntries)} more.</p>
            )}
          </>
        )}
      </WhenLoaded>
    </Section>
  );
}
