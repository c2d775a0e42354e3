import { type Destination, listDestinations } from '../api/federation.ts';
import { SearchField } from '../components/fields.tsx';
import { formatDuration } from '../components/format.ts';
import { Badge, Page } from '../components/layout.tsx';
import { type Column, List } from '../components/table.tsx';
import { Ago } from '../components/times.tsx';
import { addressOf, type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

const columns: readonly Column<Destination>[] = [
  {
    title: 'Server',
    orderBy: 'destination',
    cell: ({ destination }) => (
      <a href={addressOf('destination', destination)} class="name">
        <strong>{destination}</strong>
      </a>
    ),
  },
  {
    title: 'State',
    orderBy: 'failure_ts',
    cell: (destination) => <DestinationState destination={destination} />,
  },
  {
    title: 'Unreachable since',
    cell: ({ failure_ts }) => (failure_ts ? <Ago at={failure_ts} /> : '–'),
  },
  {
    title: 'Last attempt',
    orderBy: 'retry_last_ts',
    cell: ({ retry_last_ts }) => (retry_last_ts > 0 ? <Ago at={retry_last_ts} /> : '–'),
  },
  {
    title: 'Next attempt',
    orderBy: 'next_retry_ts',
    cell: (destination) => nextAttempt(destination),
  },
];

export function DestinationState({ destination }: { readonly destination: Destination }) {
  return destination.failure_ts === null ? (
    <Badge kind="good">Reachable</Badge>
  ) : (
    <Badge kind="bad">Unreachable</Badge>
  );
}

/** Returns a text that says when this server next tries to reach another one. */
export function nextAttempt({ retry_last_ts: last, retry_interval: interval }: Destination): string {
  if (last === 0 || interval === 0) return '–';
  const wait = last + interval - Date.now();
  return wait <= 0 ? 'with the next message' : `in ${formatDuration(wait)}`;
}

/** Lists other servers: whether this server can reach them, and since when it cannot. */
export function FederationPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { q = '' } = address.query;
  return (
    <Page title="Federation">
      <div class="filters">
        <SearchField
          label="Search"
          value={q}
          placeholder="Name of a server"
          onSearch={(text) => setQuery(address, { q: text, from: '' }, false)}
        />
      </div>
      <p class="soft">Servers to which this one has sent something.</p>
      <List
        caption="Servers"
        address={address}
        columns={columns}
        keyOf={({ destination }) => destination}
        inputs={[q]}
        load={(page, signal) => listDestinations(api, q, page, signal)}
        empty={
          q === '' ? 'This server has not sent anything to another server yet.' : `No server matches “${q}”.`
        }
      />
    </Page>
  );
}
