import { destinationDetails, resetConnection, type SharedRoom, sharedRooms } from '../api/federation.ts';
import { Action } from '../components/dialog.tsx';
import { formatCount } from '../components/format.ts';
import { Facts, Page, Section, WhenLoaded } from '../components/layout.tsx';
import { List } from '../components/table.tsx';
import { Time } from '../components/times.tsx';
import { useLoaded } from '../shell/loading.ts';
import { addressOf, type PageAddress } from '../shell/route.ts';
import { useSession } from '../shell/session-context.ts';
import { DestinationState, nextAttempt } from './federation.tsx';

/** Shows another server: its connection, and the rooms with its users. */
export function DestinationPage({ name, address }: { readonly name: string; readonly address: PageAddress }) {
  const { api } = useSession();
  const destination = useLoaded((signal) => destinationDetails(api, name, signal), [name]);
  const reset = async () => {
    await resetConnection(api, name);
    return `The next message to ${name} is sent at once.`;
  };
  return (
    <Page title={name} up={{ href: addressOf('federation'), text: 'Federation' }}>
      <Section title="Connection">
        <WhenLoaded loaded={destination}>
          {(found) => (
            <>
              <Facts
                facts={[
                  ['State', <DestinationState key="state" destination={found} />],
                  ['Unreachable since', found.failure_ts ? <Time at={found.failure_ts} /> : undefined],
                  ['Last attempt', found.retry_last_ts > 0 ? <Time at={found.retry_last_ts} /> : undefined],
                  ['Next attempt', found.retry_last_ts > 0 ? nextAttempt(found) : undefined],
                  ['Rooms with waiting events', formatCount(found.pending_rooms)],
                  ['Waiting EDUs', formatCount(found.pending_edus)],
                  [
                    'Position of the newest event sent',
                    found.last_successful_stream_ordering === null
                      ? undefined
                      : formatCount(found.last_successful_stream_ordering),
                  ],
                ]}
              />
              {found.failure_ts !== null && (
                <div class="actions wrap">
                  <Action
                    label="Try again now"
                    title={`Try to reach ${name} now?`}
                    confirm="Try again"
                    action={reset}
                    onDone={destination.reload}
                  >
                    <p>This ends the wait for the next attempt.</p>
                  </Action>
                </div>
              )}
            </>
          )}
        </WhenLoaded>
      </Section>
      <Section title="Rooms with users of that server">
        <List<SharedRoom>
          caption="Rooms with users of that server"
          address={address}
          keyOf={({ room_id }) => room_id}
          inputs={[name]}
          load={(page, signal) => sharedRooms(api, name, page, signal)}
          empty="No user of that server is in a room of this server."
          columns={[
            { title: 'Room', cell: ({ room_id: id }) => <a href={addressOf('room', id)}>{id}</a> },
            {
              title: 'Position of the newest event sent',
              isNumber: true,
              cell: ({ stream_ordering: position }) => formatCount(position),
            },
          ]}
        />
      </Section>
    </Page>
  );
}
