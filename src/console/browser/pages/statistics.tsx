import { useState } from 'preact/hooks';
import { type DayFigures, largestRooms, readDays } from '../api/server.ts';
import { Choice } from '../components/fields.tsx';
import { formatBytes, formatCount } from '../components/format.ts';
import { Empty, Page, Section, WhenLoaded } from '../components/layout.tsx';
import { Plot } from '../components/plot.tsx';
import { Table } from '../components/table.tsx';
import { useLoaded } from '../shell/loading.ts';
import { addressOf, type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

const day = 86_400_000;

const periods = [
  ['30', 'The last 30 days'],
  ['', 'The last 90 days'],
  ['365', 'The last year'],
  ['730', 'The last two years'],
] as const;

const dayText = (time: number) => new Date(time).toISOString().slice(0, 10);

/** Shows how the server grows: its figures of each day. */
export function StatisticsPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { period = '' } = address.query;
  const days = useLoaded(
    (signal) => {
      const now = Date.now();
      return readDays(api, dayText(now - Number(period || '90') * day), dayText(now + day), signal);
    },
    [period],
  );
  return (
    <Page title="Statistics">
      <div class="filters">
        <Choice
          label="Period"
          value={period}
          options={periods}
          onChange={(value) => setQuery(address, { period: value }, false)}
        />
      </div>
      <WhenLoaded loaded={days}>
        {(figures) =>
          figures.length === 0 ? (
            <Empty>The figures of a day appear when the server has run for some minutes.</Empty>
          ) : (
            <Plots figures={figures} />
          )
        }
      </WhenLoaded>
      <LargestRooms />
    </Page>
  );
}

function Plots({ figures }: { readonly figures: readonly DayFigures[] }) {
  const times = figures.map(({ day: text }) => Date.parse(text));
  const valuesOf = (name: Exclude<keyof DayFigures, 'day'>) => figures.map((found) => found[name]);
  const common = { times, isDaily: true };
  return (
    <div class="plots">
      <Plot
        {...common}
        title="Users"
        format={formatCount}
        series={[
          { label: 'All', values: valuesOf('users') },
          { label: 'Active', values: valuesOf('active_users') },
        ]}
      />
      <Plot
        {...common}
        title="Rooms"
        format={formatCount}
        series={[{ label: 'All', values: valuesOf('rooms') }]}
      />
      <Plot
        {...common}
        title="Messages a day"
        format={formatCount}
        series={[
          { label: 'All', values: valuesOf('messages') },
          { label: 'Of local users', values: valuesOf('local_messages') },
        ]}
      />
      <Plot
        {...common}
        title="Media"
        format={formatBytes}
        isBytes
        series={[{ label: 'Size', values: valuesOf('media_bytes') }]}
      />
      <Plot
        {...common}
        title="Database"
        format={formatBytes}
        isBytes
        series={[{ label: 'Size', values: valuesOf('database_bytes') }]}
      />
    </div>
  );
}

/** The list of the largest rooms. It is loaded on request only, because the server reads all events for it. */
function LargestRooms() {
  const [isWanted, setWanted] = useState(false);
  return (
    <Section title="Largest rooms">
      {isWanted ? (
        <LargestRoomsTable />
      ) : (
        <div class="actions">
          <button type="button" onClick={() => setWanted(true)}>
            Measure rooms
          </button>
          <span class="soft">The server reads all events for this, which may take minutes.</span>
        </div>
      )}
    </Section>
  );
}

function LargestRoomsTable() {
  const { api } = useSession();
  const rooms = useLoaded((signal) => largestRooms(api, signal), []);
  return (
    <WhenLoaded loaded={rooms}>
      {(found) => (
        <Table
          caption="Largest rooms"
          rows={found}
          keyOf={({ room_id }) => room_id}
          empty="There are no rooms."
          columns={[
            { title: 'Room', cell: ({ room_id: id }) => <a href={addressOf('room', id)}>{id}</a> },
            {
              title: 'Size of events',
              isNumber: true,
              cell: ({ estimated_size: size }) => formatBytes(size),
            },
          ]}
        />
      )}
    </WhenLoaded>
  );
}
