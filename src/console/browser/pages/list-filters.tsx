import { Choice, SearchField } from '../components/fields.tsx';
import { type PageAddress, setQuery } from '../shell/route.ts';

/**
 * The search field and the choice above a list. The address holds the search term as `q` and the chosen value as
 * `filter`; a change of either shows the first page.
 * @param choices the values of `filter` with their names
 */
export function ListFilters({
  address,
  placeholder,
  choices,
}: {
  readonly address: PageAddress;
  readonly placeholder: string;
  readonly choices: readonly (readonly [value: string, name: string])[];
}) {
  const { q = '', filter = '' } = address.query;
  return (
    <div class="filters">
      <SearchField
        label="Search"
        value={q}
        placeholder={placeholder}
        onSearch={(text) => setQuery(address, { q: text, from: '' }, false)}
      />
      <Choice
        label="Show"
        value={filter}
        options={choices}
        onChange={(value) => setQuery(address, { filter: value, from: '' }, false)}
      />
    </div>
  );
}
