import { listMediaUse, type MediaUse, purgeRemoteMedia } from '../api/media.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { SearchField, TextField } from '../components/fields.tsx';
import { formatBytes, formatCount } from '../components/format.ts';
import { Page } from '../components/layout.tsx';
import { type Column, List } from '../components/table.tsx';
import { addressOf, type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

const columns: readonly Column<MediaUse>[] = [
  {
    title: 'User',
    orderBy: 'user_id',
    cell: (user) => (
      <a href={addressOf('media', user.user_id)} class="name">
        <strong>{user.displayname ?? user.user_id}</strong>
        {user.displayname !== null && <small>{user.user_id}</small>}
      </a>
    ),
  },
  { title: 'Files', isNumber: true, orderBy: 'media_count', cell: (user) => formatCount(user.media_count) },
  { title: 'Size', isNumber: true, orderBy: 'media_length', cell: (user) => formatBytes(user.media_length) },
];

const day = 86_400_000;

/** Lists how much media users have uploaded. */
export function MediaPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { q = '' } = address.query;
  const purge = async (fields: FormData) => {
    const days = Number(textOf(fields, 'days'));
    const deleted = await purgeRemoteMedia(api, Date.now() - days * day);
    return deleted === 1 ? 'One file has been deleted.' : `${formatCount(deleted)} files have been deleted.`;
  };
  return (
    <Page
      title="Media"
      actions={
        <Action
          label="Delete copies of remote media"
          title="Delete copies of files of other servers"
          confirm="Delete the copies"
          kind="danger"
          action={purge}
        >
          <p>They are downloaded again when a user asks for them, if their server still has them.</p>
          <TextField
            label="Not used for this many days"
            name="days"
            type="number"
            min={1}
            value="30"
            required
          />
        </Action>
      }
    >
      <div class="filters">
        <SearchField
          label="Search"
          value={q}
          placeholder="Name or user id"
          onSearch={(text) => setQuery(address, { q: text, from: '' }, false)}
        />
      </div>
      <List
        caption="Users with media"
        address={address}
        columns={columns}
        keyOf={({ user_id }) => user_id}
        inputs={[q]}
        load={(page, signal) => listMediaUse(api, q, page, signal)}
        empty={q === '' ? 'No user has uploaded a file.' : `No user with files matches “${q}”.`}
      />
    </Page>
  );
}
