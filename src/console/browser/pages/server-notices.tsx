import { useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/request.ts';
import { sendNotice } from '../api/server.ts';
import { listUsers } from '../api/users.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { TextArea, TextField } from '../components/fields.tsx';
import { formatCount } from '../components/format.ts';
import { Page, Progress, Section } from '../components/layout.tsx';
import { useSession } from '../shell/session-context.ts';

/**
 * Whether a notice failed because of its recipient, so that it can be sent to others. Where notices are turned off, the
 * errcode is M_UNKNOWN.
 */
const isAboutUser = (error: unknown): boolean =>
  error instanceof ApiError && [400, 403, 404].includes(error.status) && error.errcode !== 'M_UNKNOWN';

/** Sends notices to one user, or to all. */
export function ServerNoticesPage() {
  const { api } = useSession();
  const [sent, setSent] = useState<{ readonly done: number; readonly total: number }>();
  /** The users who have received a notice to all: after an error, it is sent to the others only. */
  const received = useRef({ text: '', users: new Set<string>() });
  const sendToOne = async (fields: FormData) => {
    const user = textOf(fields, 'user');
    await sendNotice(api, user, textOf(fields, 'text'));
    return `The notice has been sent to ${user}.`;
  };
  const sendToAll = async (fields: FormData) => {
    const text = textOf(fields, 'text');
    const abort = new AbortController();
    if (received.current.text !== text) received.current = { text, users: new Set() };
    const { users } = received.current;
    let [done, failed] = [0, 0];
    for (let from: number | undefined = 0; from !== undefined; ) {
      const filter = { deactivated: false, guests: false };
      const page = await listUsers(api, filter, { from, limit: 100 }, abort.signal);
      for (const { name } of page.rows) {
        try {
          if (!users.has(name)) await sendNotice(api, name, text);
          users.add(name);
        } catch (error) {
          if (!isAboutUser(error)) throw error;
          failed += 1;
        }
        done += 1;
        setSent({ done, total: page.total });
      }
      from = page.next;
    }
    received.current = { text: '', users: new Set() };
    const rest = failed === 0 ? '' : ` ${formatCount(failed)} users did not get it.`;
    return `The notice has been sent to ${formatCount(done - failed)} users.${rest}`;
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
          >
            <p>Every active user except guests gets it. Keep this page open until it is done.</p>
            <TextArea label="Text" name="text" required />
            {sent && <Progress label="Sent notices" value={sent.done / Math.max(1, sent.total)} />}
          </Action>
        </div>
      </Section>
    </Page>
  );
}
