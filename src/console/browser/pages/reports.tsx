import { deleteReport, listReports, type Report, type ReportKind } from '../api/reports.ts';
import { Action } from '../components/dialog.tsx';
import { Choice } from '../components/fields.tsx';
import { Page } from '../components/layout.tsx';
import { type Column, List } from '../components/table.tsx';
import { Ago } from '../components/times.tsx';
import { addressOf, type PageAddress, setQuery } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';

const kinds = [
  ['', 'Reports of messages'],
  ['user', 'Reports of users'],
  ['room', 'Reports of rooms'],
] as const;

/** Lists the reports. All of them are open, because administrators delete the reports that are dealt with. */
export function ReportsPage({ address }: { readonly address: PageAddress }) {
  const { api } = useSession();
  // The number of reloads is in the address, because each change of the address loads the list.
  const { kind: chosen = '', reloads = '' } = address.query;
  const kind = kindOf(chosen);
  const reload = () => setQuery(address, { reloads: String(Number(reloads) + 1) }, false);
  return (
    <Page title="Reports">
      <div class="filters">
        <Choice
          label="Show"
          value={chosen}
          options={kinds}
          onChange={(value) => setQuery(address, { kind: value, from: '' }, false)}
        />
      </div>
      <List
        key={kind}
        caption="Reports"
        address={address}
        columns={columnsOf(kind, reload)}
        keyOf={({ id }) => id}
        inputs={[kind, reloads]}
        load={(page, signal) => listReports(api, kind, page, signal)}
        empty="There are no open reports."
      />
    </Page>
  );
}

const reason: Column<Report> = {
  title: 'Reason',
  cell: (report) => report.reason || <span class="soft">none given</span>,
};
const received: Column<Report> = { title: 'Received', cell: (report) => <Ago at={report.received_ts} /> };
const reporter: Column<Report> = {
  title: 'Reported by',
  cell: (report) => <a href={addressOf('user', report.user_id)}>{report.user_id}</a>,
};

function columnsOf(kind: ReportKind, reload: () => void): readonly Column<Report>[] {
  const done: Column<Report> = {
    title: '',
    cell: (report) => <Done kind={kind} report={report} onDone={reload} />,
  };
  return [subjects[kind], reason, reporter, received, done];
}

const subjects: Readonly<Record<ReportKind, Column<Report>>> = {
  event: {
    title: 'Message',
    cell: (report) => (
      <a href={addressOf('report', String(report.id))} class="name">
        <strong>Message of {report.sender ?? 'an unknown user'}</strong>
        <small>in {report.name ?? report.room_id}</small>
      </a>
    ),
  },
  user: {
    title: 'User',
    cell: ({ target_user_id: userId = '' }) => <a href={addressOf('user', userId)}>{userId}</a>,
  },
  room: {
    title: 'Room',
    cell: (report) => (
      <a href={addressOf('room', report.room_id ?? '')}>{report.name ?? report.room_id ?? 'unknown'}</a>
    ),
  },
};

/**
 * Returns the kind that an address names. Any other text means `event`: it must not become part of a path of the API.
 */
const kindOf = (text: string): ReportKind => (Object.hasOwn(subjects, text) ? (text as ReportKind) : 'event');

interface DoneProps {
  readonly kind: ReportKind;
  readonly report: Report;
  readonly onDone: () => void;
}

/** A button that deletes a report. */
export function Done({ kind, report, onDone }: DoneProps) {
  const { api } = useSession();
  const remove = async () => {
    await deleteReport(api, kind, report.id);
    return 'The report has been deleted.';
  };
  return (
    <Action
      label="Done"
      about={`Done with report ${report.id}`}
      title="Done with this report?"
      confirm="Delete the report"
      action={remove}
      onDone={onDone}
    >
      <p>The report is deleted. The reported message, room or user stays as it is.</p>
    </Action>
  );
}
