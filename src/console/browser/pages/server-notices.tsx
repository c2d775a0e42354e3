import { useEffect, useRef, useState } from 'preact/hooks';
import {
  cancelNoticeToAll,
  type NoticeToAll,
  newestNoticeToAll,
  sendNotice,
  sendNoticeToAll,
} from '../api/server.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { TextArea, TextField } from '../components/fields.tsx';
import { formatCount } from '../components/format.ts';
import { Facts, Page, Progress, Section, WhenLoaded } from '../components/layout.tsx';
import { useLoaded } from '../shell/loading.ts';
import { useSession } from '../shell/session-context.ts';

/** Milliseconds between two requests for the progress of a notice to all users. */
const interval = 1_000;

const isRunning = (notice: NoticeToAll | null | undefined) =>
  notice?.status === 'scheduled' || notice?.status === 'active';

/** Sends notices to one user, or to all. */
export function ServerNoticesPage() {
  const { api } = useSession();
  const [isWatched, setWatched] = useState(false);
  const unanswered = useRef<{ readonly text: string; readonly txnId: string } | undefined>(undefined);
  const newest = useLoaded((signal) => newestNoticeToAll(api, signal), [], isWatched ? interval : undefined);
  const runs = isRunning(newest.value);
  useEffect(() => setWatched(runs), [runs]);
  const sendToOne = async (fields: FormData) => {
    const user = textOf(fields, 'user');
    await sendNotice(api, user, textOf(fields, 'text'));
    return `The notice has been sent to ${user}.`;
  };
  const sendToAll = async (fields: FormData) => {
    const text = textOf(fields, 'text');
    // A second attempt after an error has the same transaction id, because the server may have received the first attempt.
    if (unanswered.current?.text !== text) unanswered.current = { text, txnId: newTransactionId() };
    await sendNoticeToAll(api, text, unanswered.current.txnId);
    unanswered.current = undefined;
    return 'The server sends the notice to all users.';
  };
  return (
    <Page title="Server notices">
      <Section title="Send a notice">
        <p class="soft">
          Users read notices in a room in which only the server can send. The option server_notices of the
          configuration turns them on.
        </p>
        <div class="actions wrap">
          <Action
            label="Notice to one user"
            title="Notice to one user"
            confirm="Send"
            kind="primary"
            action={sendToOne}
          >
            <TextField label="User id" name="user" required placeholder="@name:server" />
            <TextArea label="Text" name="text" required />
          </Action>
          <Action
            label="Notice to all users"
            title="Notice to all users of this server"
            confirm="Send to all"
            action={sendToAll}
            onDone={newest.reload}
          >
            <p>Every active user except guests and users of application services gets it.</p>
            <TextArea label="Text" name="text" required />
          </Action>
        </div>
      </Section>
      <WhenLoaded loaded={newest}>
        {(notice) => notice && <Newest notice={notice} onCancelled={newest.reload} />}
      </WhenLoaded>
    </Page>
  );
}

const newTransactionId = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');

interface NewestProps {
  readonly notice: NoticeToAll;
  readonly onCancelled: () => void;
}

/** The progress and the outcome of the newest notice to all users. The notice can be cancelled while it is sent. */
function Newest({ notice, onCancelled }: NewestProps) {
  const { api } = useSession();
  const { id, total, sent, failed, error } = notice;
  const cancel = async () => {
    await cancelNoticeToAll(api, id);
    return 'The notice is sent to no more users.';
  };
  const failures = Object.entries(notice.failed_users);
  return (
    <Section title="Newest notice to all users">
      {isRunning(notice) && <Progress label="Sent notices" value={(sent + failed) / Math.max(1, total)} />}
      <p role="status">
        {textAbout(notice)} {failed > 0 && `Users who did not receive it: ${formatCount(failed)}.`}{' '}
        {error ?? ''}
      </p>
      {isRunning(notice) && (
        <Action
          label="Cancel the notice"
          title="Cancel the notice to all users"
          confirm="Stop sending"
          kind="danger"
          action={cancel}
          onDone={onCancelled}
        >
          <p>Users who have got the notice keep it. The others do not get it.</p>
        </Action>
      )}
      {failures.length > 0 && <Facts facts={failures} />}
    </Section>
  );
}

function textAbout({ status, sent, total }: NoticeToAll): string {
  if (status === 'complete') return `The notice has been sent to ${formatCount(sent)} users.`;
  const part = `${formatCount(sent)} of ${formatCount(total)} users have received it.`;
  if (status === 'cancelled') return `The notice was cancelled: ${part}`;
  return status === 'failed' ? `The notice could not be sent to all users: ${part}` : part;
}
