/** Messages about completed actions (they disappear by themselves), and error messages. */
import { useEffect, useState } from 'preact/hooks';

interface Message {
  readonly id: number;
  readonly text: string;
}

/** Milliseconds that a message is shown. */
const shownFor = 6_000;

const maxMessages = 3;

let lastId = 0;
let show: ((message: Message) => void) | undefined;

/** Shows a message about a completed action for some seconds. */
export function announce(text: string): void {
  lastId += 1;
  show?.({ id: lastId, text });
}

export function Messages() {
  const [messages, setMessages] = useState<readonly Message[]>([]);
  useEffect(() => {
    show = (message) => {
      setMessages((others) => [...others, message].slice(-maxMessages));
      setTimeout(() => setMessages((others) => others.filter(({ id }) => id !== message.id)), shownFor);
    };
    return () => {
      show = undefined;
    };
  }, []);
  return (
    <div class="messages" role="status">
      {messages.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}

/** An error, with a button to try again. */
export function ErrorMessage({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div class="error-message" role="alert">
      <p>{error.message}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
