/** Tables of given rows, and of lists that the server sends page by page. */
import type { ComponentChildren } from 'preact';
import type { Page, PageRequest } from '../api/lists.ts';
import { useLoaded } from '../shell/loading.ts';
import { type PageAddress, setQuery } from '../shell/route.ts';
import { formatCount } from './format.ts';
import { Empty } from './layout.tsx';
import { ErrorMessage } from './messages.tsx';

export interface Column<Row> {
  /** Empty for a column of buttons. */
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers are aligned to the right. */
  readonly isNumber?: boolean;
  /** Short values stay on one line. */
  readonly isShort?: boolean;
  /** Value of `order_by` that sorts by this column; absent: the list cannot be sorted by it. */
  readonly orderBy?: string;
}

interface TableProps<Row> {
  /** Describes the content of the table to screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren;
  /** Absent: the administrator cannot sort the rows. */
  readonly sorted?: Sorted | undefined;
}

/** How the rows are sorted. */
interface Sorted {
  /** `orderBy` of the column by which the rows are sorted; empty: the default order of the server. */
  readonly by: string;
  readonly isDescending: boolean;
  readonly sortBy: (orderBy: string) => void;
}

export function Table<Row>({ caption, columns, rows, keyOf, empty, sorted }: TableProps<Row>) {
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  return (
    <div class="table">
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.title} column={column} sorted={sorted} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber, isShort }) => (
                <td
                  key={title}
                  data-title={title}
                  class={isNumber ? 'number' : isShort ? 'short' : undefined}
                >
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Heading<Row>({ column, sorted }: { column: Column<Row>; sorted: Sorted | undefined }) {
  const { title, isNumber, orderBy } = column;
  const style = isNumber ? 'number' : undefined;
  if (orderBy === undefined || sorted === undefined) {
    return (
      <th scope="col" class={style}>
        {title || <span class="hidden">Actions</span>}
      </th>
    );
  }
  const isSorted = sorted.by === orderBy;
  const order = sorted.isDescending ? 'descending' : 'ascending';
  return (
    <th scope="col" class={style} aria-sort={isSorted ? order : undefined}>
      <button type="button" class="sort" onClick={() => sorted.sortBy(orderBy)}>
        {title}
        <span aria-hidden="true">{isSorted ? (sorted.isDescending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
}

/** Maximum number of rows of a page. */
const pageSize = 50;

interface ListProps<Row> extends Omit<TableProps<Row>, 'rows' | 'sorted'> {
  /** The address of the page of the console. Its query holds the order of the list and the first shown row. */
  readonly address: PageAddress;
  readonly load: (page: PageRequest, signal: AbortSignal) => Promise<Page<Row>>;
  /**
   * The list is loaded again when one of these values changes, for example a filter. The order and the page of the list
   * need not be among them.
   */
  readonly inputs: readonly unknown[];
  /** Values of `order_by` for which the server lists the largest value first when `dir` is `f`. */
  readonly largestFirst?: readonly string[];
}

/** A list that the server sends page by page, and sorts. */
export function List<Row>({ address, load, inputs, largestFirst = [], ...table }: ListProps<Row>) {
  const { order = '', dir = '', from = '0' } = address.query;
  const start = Number(from) || 0;
  const loaded = useLoaded(
    (signal) => {
      const sort =
        order === '' ? {} : { order_by: order, dir: dir === 'b' ? ('b' as const) : ('f' as const) };
      return load({ from: start, limit: pageSize, ...sort }, signal);
    },
    [order, dir, start, ...inputs],
  );
  const sortBy = (orderBy: string) =>
    setQuery(address, { order: orderBy, dir: order === orderBy && dir !== 'b' ? 'b' : 'f', from: '' }, false);
  const { value, error, isLoading, reload } = loaded;
  return (
    <>
      {error && <ErrorMessage error={error} retry={reload} />}
      {value === undefined && !error && <p class="loading">Loading …</p>}
      {value !== undefined && (
        <div aria-busy={isLoading}>
          <Table
            {...table}
            rows={value.rows}
            sorted={{ by: order, isDescending: (dir === 'b') !== largestFirst.includes(order), sortBy }}
          />
          <Pager address={address} start={start} page={value} />
        </div>
      )}
    </>
  );
}

function Pager<Row>({ address, start, page }: { address: PageAddress; start: number; page: Page<Row> }) {
  const { rows, total, next } = page;
  if (rows.length === 0 && start === 0) return null;
  const range = rows.length === 0 ? 'none' : `${formatCount(start + 1)}–${formatCount(start + rows.length)}`;
  const open = (from: number) => setQuery(address, { from: from === 0 ? '' : String(from) });
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span>
        {range} of {formatCount(total)}
      </span>
      {(start > 0 || next !== undefined) && (
        <>
          <button type="button" disabled={start === 0} onClick={() => open(Math.max(0, start - pageSize))}>
            Previous
          </button>
          <button
            type="button"
            disabled={next === undefined}
            onClick={() => next !== undefined && open(next)}
          >
            Next
          </button>
        </>
      )}
    </nav>
  );
}
