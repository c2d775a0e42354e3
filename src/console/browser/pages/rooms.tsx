import { type ListedRoom, listRooms, type RoomFilter } from '../api/rooms.ts';
import { formatCount } from '../components/format.ts';
import { Badge, Page } from '../components/layout.tsx';
import { type Column, List } from '../components/table.tsx';
import { addressOf, type PageAddress } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';
import { ListFilters } from './list-filters.tsx';

const filters: Readonly<Record<string, RoomFilter>> = {
  '': {},
  public: { public_rooms: true },
  private: { public_rooms: false },
  empty: { empty_rooms: true },
};

const filterNames = [
  ['', 'All rooms'],
  ['public', 'Rooms in the public directory'],
  ['private', 'Rooms outside of the directory'],
  ['empty', 'Rooms without members'],
] as const;

const columns: readonly Column<ListedRoom>[] = [
  {
    title: 'Room',
    orderBy: 'name',
    cell: (room) => (
      <a href={addressOf('room', room.room_id)} class="name">
        <strong>{room.name ?? room.canonical_alias ?? room.room_id}</strong>
        {(room.name ?? room.canonical_alias) !== null && (
          <small>{room.name === null ? room.room_id : (room.canonical_alias ?? room.room_id)}</small>
        )}
      </a>
    ),
  },
  { title: 'Properties', cell: (room) => <RoomBadges room={room} /> },
  {
    title: 'Members',
    isNumber: true,
    orderBy: 'joined_members',
    cell: (room) => formatCount(room.joined_members),
  },
  {
    title: 'Local',
    isNumber: true,
    orderBy: 'joined_local_members',
    cell: (room) => formatCount(room.joined_local_members),
  },
  {
    title: 'State events',
    isNumber: true,
    orderBy: 'state_events',
    cell: (room) => formatCount(room.state_events),
  },
  { title: 'Version', isNumber: true, orderBy: 'version', cell: (room) => room.version ?? '–' },
];

export function RoomBadges({ room }: { readonly room: ListedRoom }) {
  return (
    <span class="badges">
      {room.room_type === 'm.space' && <Badge kind="accent">Space</Badge>}
      {room.public && <Badge kind="good">Listed</Badge>}
      {room.join_rules === 'public' && <Badge>Public</Badge>}
      {room.encryption !== null && <Badge>Encrypted</Badge>}
      {!room.federatable && <Badge>Local only</Badge>}
    </span>
  );
}

/** The page that lists and searches rooms. */
export function RoomsPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { q = '', filter = '' } = address.query;
  const listFilter = { ...filters[filter], ...(q !== '' && { search_term: q }) };
  return (
    <Page title="Rooms">
      <ListFilters address={address} placeholder="Name, alias or room id" choices={filterNames} />
      <List
        caption="Rooms"
        address={address}
        columns={columns}
        keyOf={({ room_id }) => room_id}
        inputs={[q, filter]}
        largestFirst={['joined_members', 'joined_local_members', 'version', 'state_events']}
        load={(page, signal) => listRooms(api, listFilter, page, signal)}
        empty={q === '' ? 'There are no such rooms.' : `No room matches “${q}”.`}
      />
    </Page>
  );
}
