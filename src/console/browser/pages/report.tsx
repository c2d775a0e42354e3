import { type Report, redactEvent, reportDetails } from '../api/reports.ts';
import { Action, textOf } from '../components/dialog.tsx';
import { TextField } from '../components/fields.tsx';
import { Facts, Page, Section, WhenLoaded } from '../components/layout.tsx';
import { Time } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { addressOf } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';
import { Done } from './reports.tsx';

/** Shows a report of a message, and the message. */
export function ReportPage({ id }: { readonly id: string }) {
  const { api, serverName } = useSession();
  const report = useLoaded((signal) => reportDetails(api, 'event', id, signal), [id]);
  const leave = () => {
    location.hash = addressOf('reports');
  };
  return (
    <Page title="Report of a message" up={{ href: addressOf('reports'), text: 'Reports' }}>
      <WhenLoaded loaded={report}>
        {(found) => (
          <>
            <Section title="Report" actions={<Done kind="event" report={found} onDone={leave} />}>
              <Facts
                facts={[
                  ['Reason', found.reason || 'None given'],
                  ['Reported by', <UserLink key="by" userId={found.user_id} serverName={serverName} />],
                  ['Received', <Time key="at" at={found.received_ts} />],
                ]}
              />
            </Section>
            <Section title="Message">
              <Message report={found} serverName={serverName} />
              {found.room_id && found.event_id && (
                <div class="actions wrap">
                  <Redact roomId={found.room_id} eventId={found.event_id} onDone={report.reload} />
                </div>
              )}
            </Section>
          </>
        )}
      </WhenLoaded>
    </Page>
  );
}

function Message({ report, serverName }: { readonly report: Report; readonly serverName: string }) {
  const content = report.event_json?.['content'] as Readonly<Record<string, unknown>> | undefined;
  const text = typeof content?.['body'] === 'string' ? content['body'] : undefined;
  return (
    <>
      {text === undefined ? (
        <p class="soft">This event has no text that the server can read: it may be encrypted or redacted.</p>
      ) : (
        <blockquote>{text}</blockquote>
      )}
      <Facts
        facts={[
          ['Sender', report.sender ? <UserLink userId={report.sender} serverName={serverName} /> : undefined],
          [
            'Room',
            report.room_id ? (
              <a href={addressOf('room', report.room_id)}>{report.name ?? report.room_id}</a>
            ) : undefined,
          ],
          ['Event id', <code key="id">{report.event_id}</code>],
        ]}
      />
      <details>
        <summary>The whole event</summary>
        <pre>{JSON.stringify(report.event_json, undefined, 2)}</pre>
      </details>
    </>
  );
}

/** A user id. It is a link for local users only, because other users have no page. */
function UserLink({ userId, serverName }: { readonly userId: string; readonly serverName: string }) {
  return userId.endsWith(`:${serverName}`) ? (
    <a href={addressOf('user', userId)}>{userId}</a>
  ) : (
    <span>{userId}</span>
  );
}

function Redact({ roomId, eventId, onDone }: { roomId: string; eventId: string; onDone: () => void }) {
  const { api } = useSession();
  const redact = async (fields: FormData) => {
    const sender = await redactEvent(api, roomId, eventId, textOf(fields, 'reason'));
    return `The message has been redacted by ${sender}.`;
  };
  return (
    <Action label="Redact" title="Redact this message?" kind="danger" action={redact} onDone={onDone}>
      <p>
        The content of the message is removed for all members of the room. If you may not redact the message,
        the redaction is sent in the name of its sender, or of the local user with the most rights in the
        room.
      </p>
      <TextField label="Reason" name="reason" />
    </Action>
  );
}
