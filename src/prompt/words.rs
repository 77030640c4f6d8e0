//! The words that prompts are made of.
//!
//! Common ones, since those are one token each in most vocabularies. Deliberately absent: any claim
//! that they are so on a given server, which [`super::Vocabulary`] is for.

/// Words that are likely to be one token each. The first [`super::SLOTS`] are one token each (with a
/// leading space, and without) in the vocabularies of the GPT, Llama and Qwen families; the others
/// stand in where some of those do not hold, as in small vocabularies.
#[rustfmt::skip]
pub const CANDIDATES: [&str; 195] = [
    "time", "people", "water", "year", "way", "day", "man", "world", "life", "hand", "part",
    "child", "eye", "woman", "place", "work", "week", "case", "point", "government", "company",
    "number", "group", "problem", "fact", "night", "house", "book", "story", "job", "word",
    "business", "issue", "side", "kind", "head", "service", "friend", "father", "power", "hour",
    "game", "line", "end", "member", "law", "car", "city", "community", "name", "president", "team",
    "minute", "idea", "body", "information", "back", "parent", "face", "others", "level", "office",
    "door", "health", "person", "art", "war", "history", "party", "result", "change", "morning",
    "reason", "research", "girl", "guy", "moment", "air", "teacher", "force", "education", "foot",
    "boy", "age", "policy", "music", "process", "sense", "nation", "plan", "college", "interest",
    "death", "experience", "effect", "use", "class", "control", "care", "field", "development",
    "role", "effort", "rate", "heart", "drug", "show", "leader", "light", "voice", "wife", "police",
    "mind", "price", "report", "decision", "son", "view", "relationship", "town", "road", "arm",
    "difference", "value", "building", "action", "season", "society", "tax", "director", "position",
    "player", "record", "paper", "space", "ground", "form", "event", "official", "matter", "center",
    "couple", "site", "project", "activity", "star", "table", "need", "court", "oil", "situation",
    "cost", "industry", "figure", "street", "image", "phone", "data", "picture", "practice",
    "piece", "land", "product", "doctor", "wall", "patient", "worker", "news", "test", "movie",
    "north", "love", "step", "sound", "type", "model", "source", "sign", "color", "order", "film",
    "state", "family", "student", "country", "system", "program", "question", "money", "lot",
    "right", "study", "room", "mother", "area",
];
