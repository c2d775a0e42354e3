import { type EffectiveOption, readConfiguration } from '../api/server.ts';
import { Choice, SearchField } from '../components/fields.tsx';
import { Badge, Page, WhenLoaded } from '../components/layout.tsx';
import { type Column, Table } from '../components/table.tsx';
import { useLoaded } from '../shell/loading.ts';
import { type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

const columns: readonly Column<EffectiveOption>[] = [
  { title: 'Option', cell: ({ name }) => <code>{name}</code> },
  { title: 'Value', cell: ({ value }) => <code class="value">{textOf(value)}</code> },
  { title: 'From', cell: (option) => <Source option={option} /> },
];

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value, undefined, 1));

function Source({ option }: { readonly option: EffectiveOption }) {
  const { source, file, line } = option;
  if (source === 'default') return <span class="soft">default</span>;
  if (source === 'derived') return <Badge>environment, or another option</Badge>;
  return (
    <span class="name">
      <span>{file?.replace(/^.*\//, '')}</span>
      <small>line {line}</small>
    </span>
  );
}

/** Shows the options in force. The server has masked their secrets. */
export function ConfigurationPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  const { q = '', show = q === '' ? 'set' : 'all' } = address.query;
  const options = useLoaded((signal) => readConfiguration(api, signal), []);
  const isWanted = ({ name, source }: EffectiveOption) =>
    name.includes(q.toLowerCase()) && (show !== 'set' || source !== 'default');
  return (
    <Page title="Configuration">
      <div class="filters">
        <SearchField
          label="Search"
          value={q}
          placeholder="Name of an option"
          onSearch={(text) => setQuery(address, { q: text }, false)}
        />
        <Choice
          label="Show"
          value={show}
          options={[
            ['set', 'Options that were set'],
            ['all', 'All options'],
          ]}
          onChange={(value) => setQuery(address, { show: value }, false)}
        />
      </div>
      <WhenLoaded loaded={options}>
        {(found) => (
          <Table
            caption="Options"
            columns={columns}
            rows={found.filter(isWanted)}
            keyOf={({ name }) => name}
            empty={
              q === ''
                ? 'No option is known to be set in a file. “All options” shows the values in force.'
                : `No option${show === 'set' ? ' that was set' : ''} is named like “${q}”.`
            }
          />
        )}
      </WhenLoaded>
    </Page>
  );
}
