import { type AuditEntry, listAuditLog } from '../api/server.ts';
import { Choice, SearchField } from '../components/fields.tsx';
import { formatCount, formatTime } from '../components/format.ts';
import { Badge, Page, WhenLoaded } from '../components/layout.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

const columns: readonly Column<AuditEntry>[] = [
  { title: 'When', isShort: true, cell: ({ ts }) => <Time at={ts} /> },
  { title: 'Administrator', cell: ({ admin }) => admin },
  {
    title: 'Action',
    cell: ({ operation, method, path }) => (
      <span class="name">
        <strong>{operation.includes(' ') ? operation : wordsOf(operation)}</strong>
        <small>
          {method} {path.replace('/_server/admin', '')}
        </small>
      </span>
    ),
  },
  { title: 'Target', cell: ({ target }) => target ?? '' },
  {
    title: 'Requests',
    isNumber: true,
    cell: ({ requests, last_ts: last }) =>
      requests === 1 ? '1' : <span title={`the last at ${formatTime(last)}`}>{formatCount(requests)}</span>,
  },
  {
    title: 'Result',
    cell: ({ status }) => <Badge kind={status < 400 ? 'good' : 'bad'}>{status}</Badge>,
  },
  { title: 'From', isShort: true, cell: ({ ip }) => ip },
];

/** Splits the name of an operation into words: `deleteRoom` becomes "delete room". */
const wordsOf = (operation: string) => operation.replaceAll(/([A-Z])/g, ' $1').toLowerCase();

const pageSize = 50;

/** Lists what administrators did, when, and from which IP address. */
export function AuditLogPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { q = '', show = '', after = '' } = address.query;
  const filter = {
    ...(q !== '' && { target: q }),
    ...(show === '' && { changes: true }),
  };
  const log = useLoaded((signal) => listAuditLog(api, filter, after, pageSize, signal), [q, show, after]);
  return (
    <Page title="Audit log">
      <div class="filters">
        <SearchField
          label="Target"
          value={q}
          placeholder="User id, room id, server"
          onSearch={(text) => setQuery(address, { q: text, after: '' }, false)}
        />
        <Choice
          label="Show"
          value={show}
          options={[
            ['', 'Changes'],
            ['all', 'All requests, also refused ones'],
          ]}
          onChange={(value) => setQuery(address, { show: value, after: '' }, false)}
        />
      </div>
      <WhenLoaded loaded={log}>
        {({ rows, total, next }) => (
          <div>
            <Table
              caption="Requests of administrators"
              columns={columns}
              rows={rows}
              keyOf={({ id }) => id}
              empty={q === '' ? 'There are no entries yet.' : `There is no entry about “${q}”.`}
            />
            <nav class="pager" aria-label="Pages of the list">
              <span>{formatCount(total)} entries</span>
              <button type="button" disabled={after === ''} onClick={() => setQuery(address, { after: '' })}>
                Newest
              </button>
              <button
                type="button"
                disabled={next === undefined}
                onClick={() => setQuery(address, { after: String(next) })}
              >
                Older
              </button>
            </nav>
          </div>
        )}
      </WhenLoaded>
    </Page>
  );
}
