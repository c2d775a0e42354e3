import { changeUser, type ListedUser, listUsers, requireFreeName, type UserFilter } from '../api/users.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { Checkbox, TextField } from '../components/fields.tsx';
import { Page } from '../components/layout.tsx';
import { type Column, List } from '../components/table.tsx';
import { Ago, Day } from '../components/times.tsx';
import { addressOf, type PageAddress } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';
import { ListFilters } from './list-filters.tsx';
import { UserBadges } from './user-badges.tsx';

const filters: Readonly<Record<string, UserFilter>> = {
  '': { deactivated: false },
  admins: { admins: true, deactivated: false },
  deactivated: { deactivated: true },
  members: { guests: false, deactivated: false },
  all: {},
};

const filterNames = [
  ['', 'Active accounts'],
  ['members', 'Active accounts except guests'],
  ['admins', 'Administrators'],
  ['deactivated', 'Deactivated accounts'],
  ['all', 'All accounts'],
] as const;

const columns: readonly Column<ListedUser>[] = [
  {
    title: 'User',
    orderBy: 'name',
    cell: (user) => (
      <a href={addressOf('user', user.name)} class="name">
        <strong>{user.displayname ?? user.name}</strong>
        {user.displayname !== null && <small>{user.name}</small>}
      </a>
    ),
  },
  { title: 'State', cell: (user) => <UserBadges user={user} /> },
  { title: 'Last seen', orderBy: 'last_seen_ts', cell: (user) => <Ago at={user.last_seen_ts} /> },
  { title: 'Registered', orderBy: 'creation_ts', cell: (user) => <Day at={user.creation_ts} /> },
];

/** The page that lists and searches users. */
export function UsersPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { q = '', filter = '' } = address.query;
  const listFilter = { ...filters[filter], ...(q !== '' && { name: q }) };
  return (
    <Page title="Users" actions={<CreateUser />}>
      <ListFilters address={address} placeholder="Name or user id" choices={filterNames} />
      <List
        caption="Users"
        address={address}
        columns={columns}
        keyOf={({ name }) => name}
        inputs={[q, filter]}
        load={(page, signal) => listUsers(api, listFilter, page, signal)}
        empty={q === '' ? 'There are no such accounts.' : `No account matches “${q}”.`}
      />
    </Page>
  );
}

function CreateUser() {
  const { api, serverName } = useSession();
  const create = async (fields: FormData) => {
    const name = textOf(fields, 'name');
    const userId = `@${name}:${serverName}`;
    const displayName = textOf(fields, 'displayname');
    await requireFreeName(api, name);
    await changeUser(api, userId, {
      password: String(fields.get('password')),
      admin: fields.has('admin'),
      ...(displayName !== '' && { displayname: displayName }),
    });
    location.hash = addressOf('user', userId);
    return `${userId} can log in now.`;
  };
  return (
    <Action label="Create a user" title="Create a user" confirm="Create" kind="primary" action={create}>
      <TextField
        label="User name"
        name="name"
        required
        pattern="[a-z0-9._=\-\/+]+"
        hint={`Lower case letters, digits and . _ = - / +. The user id will be @name:${serverName}.`}
      />
      <TextField label="Password" name="password" type="password" autocomplete="new-password" required />
      <TextField label="Display name" name="displayname" />
      <Checkbox label="Server administrator" name="admin" />
    </Action>
  );
}
